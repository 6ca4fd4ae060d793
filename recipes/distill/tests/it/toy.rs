//! A toy of a sentence transformer as a folder on disk: two layers of twelve numbers, made by the same
//! rule as in `tests/data/make.py`, and a WordPiece tokenizer of forty entries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cognate::model::unknown::fnv1a;
use cognate_kernels::random::SplitMix64;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

pub const HIDDEN: usize = 12;
const INNER: usize = 20;
const LAYERS: usize = 2;
const HEADS: usize = 3;
const POSITIONS: usize = 48;

/// The vocabulary: special entries, words, and parts of words.
pub const ENTRIES: [&str; 40] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "of", "to", "in", "city", "town", "road",
    "river", "hill", "stone", "wall", "old", "new", "large", "small", "leads", "falls", "stands",
    "burns", "fire", "rain", "man", "woman", "child", "walks", "reads", "writes", "book", "letter",
    "2010", "2011", "##s", "##ed", "##ing", "lake",
];

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Returns the tensors of a toy model of this kind, `bert` or `mpnet`.
pub fn tensors(kind: &str) -> Tensors {
    let square = [HIDDEN, HIDDEN];
    let mut found = Tensors::new();
    let mut put = |name: &str, shape: &[usize]| {
        let mut random = SplitMix64::seeded(fnv1a(format!("{kind}.{name}").as_bytes()));
        let near = |number: f64| match name.ends_with("LayerNorm.weight") {
            true => 0.8 + 0.4 * number,
            false => 1.2 * (number - 0.5),
        };
        let numbers = (0..shape.iter().product()).map(|_| near(random.unit()) as f32);
        found.insert(name.to_owned(), (shape.to_vec(), numbers.collect()));
    };
    put("embeddings.word_embeddings.weight", &[ENTRIES.len(), HIDDEN]);
    put("embeddings.position_embeddings.weight", &[POSITIONS, HIDDEN]);
    put("embeddings.LayerNorm.weight", &[HIDDEN]);
    put("embeddings.LayerNorm.bias", &[HIDDEN]);
    let [parts, after] = if kind == "bert" {
        put("embeddings.token_type_embeddings.weight", &[2, HIDDEN]);
        let query =
            "attention.self.query attention.self.key attention.self.value attention.output.dense";
        [query, "attention.output.LayerNorm output.LayerNorm"]
    } else {
        put("encoder.relative_attention_bias.weight", &[32, HEADS]);
        let query = "attention.attn.q attention.attn.k attention.attn.v attention.attn.o";
        [query, "attention.LayerNorm output.LayerNorm"]
    };
    for layer in 0..LAYERS {
        let place = format!("encoder.layer.{layer}");
        for part in parts.split(' ') {
            put(&format!("{place}.{part}.weight"), &square);
            put(&format!("{place}.{part}.bias"), &[HIDDEN]);
        }
        put(&format!("{place}.intermediate.dense.weight"), &[INNER, HIDDEN]);
        put(&format!("{place}.intermediate.dense.bias"), &[INNER]);
        put(&format!("{place}.output.dense.weight"), &[HIDDEN, INNER]);
        put(&format!("{place}.output.dense.bias"), &[HIDDEN]);
        for norm in after.split(' ') {
            put(&format!("{place}.{norm}.weight"), &[HIDDEN]);
            put(&format!("{place}.{norm}.bias"), &[HIDDEN]);
        }
    }
    found
}

/// `config.json` of a toy.
pub fn config(kind: &str) -> Value {
    json!({
        "model_type": kind, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "max_position_embeddings": POSITIONS, "vocab_size": ENTRIES.len(),
        "layer_norm_eps": 1e-5, "hidden_act": "gelu", "type_vocab_size": 2,
    })
}

fn tokenizer() -> Value {
    let special = |id: usize| {
        json!({"id": id, "special": true, "content": ENTRIES[id], "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false})
    };
    let vocabulary: BTreeMap<&str, usize> =
        ENTRIES.iter().enumerate().map(|(id, entry)| (*entry, id)).collect();
    json!({
        "version": "1.0", "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [special(0), special(1), special(2), special(3)],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                               "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

pub fn write_tensors(path: &Path, tensors: &Tensors) {
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, numbers))| {
            (name, shape, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (name, TensorView::new(Dtype::F32, (*shape).clone(), bytes).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

pub fn write_json(path: &Path, value: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, value.to_string()).unwrap();
}

/// Writes a toy with this pooling, `mean_tokens`, `cls_token` or `max_tokens`.
pub fn write(folder: &Path, kind: &str, pooling: &str) -> PathBuf {
    let folder = folder.join(format!("{kind}-{pooling}"));
    let module = |path: &str, kind: &str| json!({"idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.models.{kind}")});
    let modules = [
        module("", "Transformer"),
        module("1_Pooling", "Pooling"),
        module("2_Normalize", "Normalize"),
    ];
    write_json(&folder.join("modules.json"), &json!(modules));
    let mut modes = json!({"word_embedding_dimension": HIDDEN});
    for mode in ["mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens"] {
        modes[format!("pooling_mode_{mode}")] = json!(mode == pooling);
    }
    write_json(&folder.join("1_Pooling/config.json"), &modes);
    write_json(
        &folder.join("sentence_bert_config.json"),
        &json!({"max_seq_length": 40, "do_lower_case": false}),
    );
    write_json(&folder.join("config.json"), &config(kind));
    write_json(&folder.join("tokenizer.json"), &tokenizer());
    write_tensors(&folder.join("model.safetensors"), &tensors(kind));
    folder
}
