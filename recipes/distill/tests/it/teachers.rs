//! Sentence transformers: their vectors against an implementation in NumPy, and folders that make no
//! sense.

use std::path::{Path, PathBuf};

use cognate_distill::teacher::Teacher;
use half::f16;
use serde_json::{Value, json};

use crate::toy;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/golden.json")).unwrap()
}

fn embed(teacher: &Teacher, texts: &[String]) -> Vec<f16> {
    teacher.embed(texts, &|_| ()).unwrap()
}

#[test]
fn vectors_are_those_of_the_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for kind in ["bert", "mpnet"] {
        for (pooling, mode) in
            [("mean", "mean_tokens"), ("cls", "cls_token"), ("max", "max_tokens")]
        {
            let teacher = Teacher::open(&toy::write(folder.path(), kind, mode)).unwrap();
            let golden = golden();
            let cases: Vec<&Value> = golden["cases"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|case| case["kind"] == kind && case["pooling"] == pooling)
                .collect();
            let words = |case: &&Value| {
                let ids: Vec<usize> = serde_json::from_value(case["ids"].clone()).unwrap();
                let own = &ids[1..ids.len() - 1];
                own.iter().map(|&id| toy::ENTRIES[id]).collect::<Vec<_>>().join(" ")
            };
            let texts: Vec<String> = cases.iter().map(words).collect();
            let found = embed(&teacher, &texts);
            for (case, found) in cases.iter().zip(found.chunks_exact(toy::HIDDEN)) {
                let expected: Vec<f32> = serde_json::from_value(case["vector"].clone()).unwrap();
                for (found, expected) in found.iter().zip(expected) {
                    // What half precision leaves of numbers below 1.
                    assert!((found.to_f32() - expected).abs() < 4e-4, "{case}: {found} {expected}");
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 2 * 3 * 4 * toy::HIDDEN);
}

#[test]
fn a_text_has_one_vector_whatever_stands_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = Teacher::open(&toy::write(folder.path(), "mpnet", "mean_tokens")).unwrap();
    let texts: Vec<String> = (0..700)
        .map(|at| (0..1 + at % 9).map(|word| toy::ENTRIES[4 + (at * 7 + word * 5) % 35]).collect())
        .map(|words: Vec<&str>| words.join(" "))
        .collect();
    let all = embed(&teacher, &texts);
    for at in [0, 8, 123, 699] {
        let alone = embed(&teacher, &texts[at..at + 1]);
        let among = &all[at * toy::HIDDEN..(at + 1) * toy::HIDDEN];
        for (alone, among) in alone.iter().zip(among) {
            assert!((alone.to_f32() - among.to_f32()).abs() < 1e-3);
        }
    }
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| embed(&teacher, &texts))
    };
    assert!(with(1) == all && with(4) == all);
    // Beyond the longest text, nothing is read; a text of nothing is still told by its marks.
    let long = vec!["town ".repeat(38), format!("{}lake", "town ".repeat(38)), String::new()];
    let found = embed(&teacher, &long);
    let rows: Vec<&[f16]> = found.chunks_exact(toy::HIDDEN).collect();
    assert_eq!(rows[0], rows[1]);
    assert!(rows[2].iter().any(|number| *number != f16::ZERO));
}

/// Changes a folder and returns the message with which it is then refused.
fn refusal(change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = toy::write(folder.path(), "bert", "mean_tokens");
    change(&path);
    match Teacher::open(&path) {
        Ok(_) => panic!("a damaged folder was opened"),
        Err(error) => error.to_string(),
    }
}

fn with_config(key: &str, value: Value) -> String {
    refusal(|folder| {
        let mut config = toy::config("bert");
        config[key] = value;
        toy::write_json(&folder.join("config.json"), &config);
    })
}

fn with_tensors(change: impl FnOnce(&mut toy::Tensors)) -> String {
    refusal(|folder| {
        let mut tensors = toy::tensors("bert");
        change(&mut tensors);
        toy::write_tensors(&folder.join("model.safetensors"), &tensors);
    })
}

#[test]
fn configurations_that_make_no_sense_are_refused_by_name() {
    for (key, value) in [
        ("model_type", json!("roberta")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(1_000_000_000_000_u64)),
        ("num_hidden_layers", json!(100_000)),
        ("num_attention_heads", json!(5)),
        ("vocab_size", json!(1_u64 << 40)),
        ("max_position_embeddings", json!(4)),
        ("layer_norm_eps", json!(-1.0)),
        ("hidden_act", json!("relu")),
        ("position_embedding_type", json!("relative_key")),
    ] {
        let said = with_config(key, value.clone());
        let named = said.contains(key) || (key == "num_attention_heads" && said.contains("heads"));
        let short = key == "max_position_embeddings" && said.contains("tokens");
        assert!(said.contains("config.json") && (named || short), "{key} {value}: {said}");
    }
    let said = refusal(|folder| {
        toy::write_json(&folder.join("config.json"), &json!({"model_type": "bert"}))
    });
    assert!(said.contains("hidden_size"), "{said}");
    let pooling = |modes: Value| {
        refusal(|folder| toy::write_json(&folder.join("1_Pooling/config.json"), &modes))
    };
    for modes in [
        json!({}),
        json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}),
        json!({"pooling_mode_mean_tokens": true, "pooling_mode_mean_sqrt_len_tokens": true}),
    ] {
        let said = pooling(modes);
        assert!(said.contains("mean, cls and max"), "{said}");
    }
    let modules = |kind: &str, path: &str| {
        let modules = json!([
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": path, "type": format!("sentence_transformers.models.{kind}")},
        ]);
        refusal(|folder| toy::write_json(&folder.join("modules.json"), &modules))
    };
    assert!(modules("Dense", "1_Dense").contains("Dense"));
    assert!(modules("Pooling", "../1_Pooling").contains("outside"));
    assert!(modules("Normalize", "x").contains("no pooling module"));
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name() {
    let key = "encoder.layer.1.attention.self.key.weight";
    let said = with_tensors(|tensors| drop(tensors.remove(key)));
    assert!(said.contains(key) && said.contains("no tensor"), "{said}");
    let said = with_tensors(|tensors| tensors.get_mut(key).unwrap().0 = vec![6, 24]);
    assert!(said.contains(key) && said.contains("[12, 12]"), "{said}");
    let said = with_tensors(|tensors| tensors.get_mut(key).unwrap().1[7] = f32::NAN);
    assert!(said.contains(key) && said.contains("not a number"), "{said}");
    let cut = |bytes: usize| {
        refusal(|folder| {
            let path: PathBuf = folder.join("model.safetensors");
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..bytes]).unwrap();
        })
    };
    for bytes in [0, 7, 100, 5000] {
        assert!(cut(bytes).contains("not a safetensors file"), "{}", cut(bytes));
    }
    let said = refusal(|folder| {
        std::fs::rename(folder.join("model.safetensors"), folder.join("pytorch_model.bin"))
            .unwrap();
    });
    assert!(said.contains("pickle") && said.contains("safe_serialization"), "{said}");
}

#[test]
fn tokenizers_that_do_not_fit_are_refused() {
    let said = with_config("vocab_size", json!(39));
    // The table of tensors still has 40 rows, but the tokenizer is looked at first.
    assert!(said.contains("\"lake\"") && said.contains("39"), "{said}");
    let said = refusal(|folder| std::fs::write(folder.join("tokenizer.json"), "{}").unwrap());
    assert!(said.contains("tokenizer.json"), "{said}");
    let said = refusal(|folder| std::fs::remove_file(folder.join("tokenizer.json")).unwrap());
    assert!(said.contains("tokenizer.json"), "{said}");
}
