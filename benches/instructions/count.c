// A plugin of QEMU that counts the instructions a program executes, on all its threads. What it needs of
// `qemu-plugin.h`, version 1, is declared here: Debian packages QEMU with plugins, but not that file.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

int qemu_plugin_version = 1;
static uint64_t executed;

static void count(unsigned processor, void *instructions) {
    __atomic_fetch_add(&executed, (uint64_t)instructions, __ATOMIC_RELAXED);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    qemu_plugin_register_vcpu_tb_exec_cb(block, count, 0, (void *)qemu_plugin_tb_n_insns(block));
}

static void end(qemu_plugin_id_t id, void *nothing) { fprintf(stderr, "Collected : %" PRIu64 "\n", executed); }

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **arguments) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
