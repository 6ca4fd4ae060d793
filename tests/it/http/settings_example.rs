//! `cognate.toml.example`: what it shows is what there is.

use std::path::Path;

use cognate_server::http::Settings;
use cognate_server::http::settings::{LIST, Layers, Loaded, Origin, SettingsFile, example};

fn read(lines: &[&str]) -> Loaded {
    let file = SettingsFile { name: "cognate.toml".to_owned(), text: lines.join("\n") };
    let loaded = Loaded::read(&Layers { file: Some(file), ..Layers::default() });
    assert_eq!(loaded.problems, []);
    loaded
}

#[test]
fn the_example_has_every_setting_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cognate.toml.example");
    let example = example();
    if std::env::var_os("TEST_COGNATE_BLESS").is_some() {
        std::fs::write(&path, &example).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == example,
        "cognate.toml.example is not current: run with TEST_COGNATE_BLESS=1"
    );
    assert!(example.lines().all(|line| line.is_empty() || line.starts_with('#')));
    let begins_with_key = |line: &&str| line.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase);
    let (settings, models) = example.split_once("\n#[models]\n").unwrap();
    let given: Vec<&str> =
        settings.lines().filter(begins_with_key).map(|line| &line[1..]).collect();
    assert_eq!(given.len(), LIST.len());
    let loaded = read(&given);
    assert_eq!(loaded.settings, Settings::default());
    for setting in LIST {
        assert!(matches!(loaded.origin(setting.key), Origin::File { .. }), "{}", setting.key);
    }
    let without_model = given.iter().filter(|line| !line.starts_with("model ="));
    let table = models.lines().map(|line| &line[1..]);
    let all: Vec<&str> = without_model.copied().chain(["[models]"]).chain(table).collect();
    let loaded = read(&all);
    let names: Vec<&str> = loaded.settings.model.iter().map(|model| &model.name[..]).collect();
    assert_eq!(names, ["news", "tweets"]);
}
