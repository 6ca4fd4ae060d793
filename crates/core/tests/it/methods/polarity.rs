//! Opposites: what tells them, what lowers their scores, and what a section must be.

use std::sync::LazyLock;

use cognate::engine::rank::{Pages, Question};
use cognate::engine::{Candidates, Likes, Opposites, OppositionKind, PageOptions, QueryError};
use cognate::methods::polarity::{NAMES_SECTION, SECTION, fit, fit_names};
use cognate::methods::{Auto, Fitted, Method};
use cognate::{Engine, Model, Query};
use cognate_testing as support;

/// The lists of the repository.
const LIST: &str = include_str!("../../../../../models/polarity-en.tsv");
const NAMES: &str = include_str!("../../../../../models/names-en.tsv");

/// The default model's words with the sections of the lists.
fn engine() -> &'static Engine {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
        let model = support::default_model();
        let section = fit(&model.vocabulary(), LIST.lines()).unwrap();
        let names = fit_names(&model, NAMES.lines()).unwrap();
        Engine::new(support::with_sections(&model, &[section, names])).unwrap()
    });
    &ENGINE
}

fn score(method: Method, a: &str, b: &str) -> f32 {
    engine().similarity(&[(a, b)], &Query::new(method)).unwrap().scores[0]
}

/// The kinds by which two texts are opposed.
fn kinds(a: &str, b: &str) -> Vec<&'static str> {
    let told = engine().opposes(a, b, &Query::new(Method::PolarityBlend)).unwrap();
    let names: Vec<_> = told.iter().map(|opposition| opposition.kind.name()).collect();
    let back = engine().opposes(b, a, &Query::new(Method::PolarityBlend)).unwrap();
    assert_eq!(names.len(), back.len(), "{a} | {b}");
    for (one, other) in told.iter().zip(&back) {
        let [a, b] = &other.words;
        assert_eq!((one.kind, &one.words), (other.kind, &[b.clone(), a.clone()]));
    }
    names
}

/// Opposed texts, and the kind.
const OPPOSED: [(&str, &str, &str); 31] = [
    ("negation", "the order has arrived", "the order has not arrived"),
    ("negation", "hotels that allow pets", "hotels that don't allow pets"),
    ("negation", "the pump fails to start", "the pump starts"),
    ("negation", "a loan with a cosigner", "a loan without a cosigner"),
    ("negation", "fluoride-free toothpaste", "fluoride toothpaste"),
    ("negation", "we always accept cards", "we never accept cards"),
    ("negation", "they accept returns", "they refuse returns"),
    ("antonym", "turn on dark mode", "turn off dark mode"),
    ("antonym", "oil prices rise", "oil prices fall"),
    ("antonym", "which apps are encrypted", "which apps are unencrypted"),
    ("antonym", "a list of flammable solvents", "a list of nonflammable solvents"),
    ("number", "a stay of 30 days", "a stay of 180 days"),
    ("number", "gas at $3.89 a gallon", "gas at $4.39 a gallon"),
    ("number", "Rovers beat City 2-0", "Rovers beat City 3-1"),
    ("number", "one slice of pizza", "three slices of pizza"),
    ("roles", "Team A beats Team B", "Team B beats Team A"),
    ("roles", "the dog bit my cat", "my cat bit the dog"),
    ("roles", "trains from Kyoto to Osaka", "trains from Osaka to Kyoto"),
    ("name", "Turkey raises interest rates", "Argentina raises interest rates"),
    ("name", "turkey raises interest rates", "argentina raises interest rates"),
    ("name", "Alice prefers window seats", "Marco prefers window seats"),
    ("name", "the drawing of Rev A is final", "the drawing of Rev B is final"),
    ("name", "rotate the staging key", "rotate the production key"),
    ("name", "the meeting is on Monday", "the meeting is on Thursday"),
    ("name", "firmware of the XR500", "firmware of the XR600"),
    ("name", "Anna Smith wins the race", "Anna Jones wins the race"),
    ("name", "Slack is down again", "Zoom is down again"),
    ("name", "the red jacket is sold out", "the blue jacket is sold out"),
    ("name", "Sudan closes its northern border", "South Sudan closes its northern border"),
    ("name", "the meeting is in room 4B", "the meeting is in room 4C"),
    ("name", "Delta cancels flights after a storm", "United cancels flights after a storm"),
];

/// Texts that agree.
const AGREE: [(&str, &str); 34] = [
    ("nobody is outside", "there is no one outside"),
    ("there is no boy outdoors", "the boy is not outdoors"),
    ("the printer won't work", "the printer is not working"),
    ("can't connect to the wifi", "unable to connect to the wifi"),
    ("keep the porch light on", "don't turn the porch light off"),
    ("not only dogs are allowed", "dogs are allowed"),
    ("you must be at least 18", "you must be no younger than 18"),
    ("5k followers", "5,000 followers"),
    ("1,500,000 followers", "1.5 million followers"),
    ("a race of 1 km", "a race of 1,000 meters"),
    ("twenty five people", "25 people"),
    ("five people", "5 people"),
    ("a meeting at 14:00", "a meeting at 2 pm"),
    ("a meeting at 2:30pm", "a meeting at 14:30"),
    ("12 roses", "a dozen roses"),
    ("a price of 1400 in 2012", "a price of 1400"),
    ("cats and dogs in town", "dogs and cats in town"),
    ("in Paris for kids", "for kids in Paris"),
    ("gum with no sugar", "sugarless gum"),
    ("Merkel visits Paris", "Angela Merkel visits Paris"),
    ("Moscow denies the report", "Russia denies the report"),
    ("Yemen rebels seize the port", "Yemeni rebels seize the port"),
    ("a flat in New York City", "a flat in NYC"),
    ("flight BA117 is late", "flight BA 117 is late"),
    ("Gaddafi speaks on television", "Qaddafi speaks on television"),
    ("the office in München is closed", "the office in Muenchen is closed"),
    ("deploy to k8s fails", "deploy to Kubernetes fails"),
    ("a shop in Lisbon", "a shop"),
    ("you may march on Sunday", "you may walk on Sunday"),
    ("is that the best price", "is this the best offer"),
    ("painting snatched from New York gallery", "painting snatched in NYC"),
    ("West Virginia raises its taxes", "W. Virginia raises taxes"),
    ("what is new? York raises its taxes", "York raises its taxes"),
    ("how do I get into the IITs", "how can I get into the IIT"),
];

#[test]
fn opposites_are_told_by_their_kinds() {
    for (kind, a, b) in OPPOSED {
        assert_eq!(kinds(a, b), [kind], "{a} | {b}");
    }
}

#[test]
fn texts_that_agree_are_not_opposed() {
    for (a, b) in AGREE {
        assert_eq!(kinds(a, b), Vec::<&str>::new(), "{a} | {b}");
    }
}

fn pages(engine: &Engine, question: &Question<'_>, texts: &[&str]) -> Pages {
    engine.rank_pages(question, &Candidates::new(texts), || Ok::<_, QueryError>(())).unwrap()
}

/// What `similarity` and a page of a ranking tell of two texts, by a question that also asks for more or
/// not.
fn related(engine: &Engine, (a, b): (&str, &str), query: Query) -> Option<bool> {
    let told = [false, true].map(|more| {
        let query =
            Query { opposes: more && engine.knows_opposites().is_ok(), coverage: more, ..query };
        let scores = engine.similarity(&[("a dog", "a bone"), (a, b)], &query).unwrap();
        let page = PageOptions { explain: more, ..PageOptions::default() };
        let question = Question { page, ..Question::new(a, query) };
        let made = pages(engine, &question, &[b, "a cat"]);
        let ranked = made.pages[0].results().find(|result| result.index == 0).unwrap();
        assert_eq!(ranked.related, scores.related.get(1).copied(), "{a} | {b}");
        ranked.related
    });
    assert_eq!(told[0], told[1], "{a} | {b}: it depends on what else is asked");
    told[0]
}

#[test]
fn the_verdict_of_a_pair_is_the_same_whatever_is_asked_to_be_returned() {
    let opposed = OPPOSED.iter().map(|&(_, a, b)| (true, (a, b)));
    let pairs = opposed.chain(AGREE.iter().map(|&pair| (false, pair)));
    for (opposed, pair) in pairs {
        for method in [Method::PolarityBlend, Method::CoverageBlend, Method::AvgCos] {
            let plain = Query::new(method);
            assert_eq!(related(engine(), pair, plain), None);
            for rule in [None, Some(Opposites::Ignore)] {
                let query = plain.with_opposites(rule);
                let reached = score(query.method, pair.0, pair.1);
                for (threshold, is_reached) in
                    [(-1.0, true), (reached, true), (reached.next_up(), false)]
                {
                    let query = Query { threshold: Some(threshold), ..query };
                    let expected = is_reached && (!opposed || rule.is_some());
                    assert_eq!(
                        related(engine(), pair, query),
                        Some(expected),
                        "{pair:?} {query:?}"
                    );
                }
            }
        }
    }
}

/// Neither of these is an error: what cannot be looked at does not oppose.
#[test]
fn texts_are_related_by_their_score_alone_where_opposites_cannot_be_told() {
    let lacking = Engine::new(support::tiny_model()).unwrap();
    let query = Query { threshold: Some(0.0), ..Query::new(Method::AvgCos) };
    assert_eq!(related(&lacking, ("new york", "not new york"), query), Some(true));
    let likes = Likes::any_of(["turn on dark mode"]);
    let page = PageOptions { drop_opposed: true, ..PageOptions::default() };
    let dropping = Question { page, ..Question::new(likes.clone(), query) };
    let go_on = || Ok::<_, QueryError>(());
    let refused = engine().rank_pages(&dropping, &Candidates::new(&["a dog"]), go_on).unwrap_err();
    assert_eq!(refused, QueryError::OpposedToNoQuery { dropped: true });
    let made = pages(engine(), &Question::new(likes, query), &["turn off dark mode", ""]);
    let told: Vec<_> = made.pages[0].results().map(|result| result.related).collect();
    assert_eq!(
        told,
        [Some(true), None],
        "of texts that are liked together, and of one without a score"
    );
}

#[test]
fn the_words_that_oppose_are_told_with_their_places() {
    let (a, b) = ("Don't turn 5 lights on", "turn 7 lights on");
    let told = engine().opposes(a, b, &Query::new(Method::AvgCos)).unwrap();
    let words = |side: usize| -> Vec<Vec<(&str, [u32; 2])>> {
        let words = told.iter().map(|opposition| &opposition.words[side]);
        words.map(|words| words.iter().map(|w| (w.token.as_str(), w.span)).collect()).collect()
    };
    let found: Vec<_> = told.iter().map(|opposition| opposition.kind).collect();
    assert_eq!(found, [OppositionKind::Negation, OppositionKind::Number]);
    assert_eq!(words(0), [vec![("don't", [0, 5])], vec![("5", [11, 12])]]);
    assert_eq!(words(1), [vec![], vec![("7", [5, 6])]]);
    let told =
        engine().opposes("the dog bit my cat", "my cat bit the dog", &Query::new(Method::AvgCos));
    let told = told.unwrap();
    let texts = told[0]
        .words
        .each_ref()
        .map(|words| words.iter().map(|word| word.token.as_str()).collect::<Vec<_>>().join(" "));
    assert_eq!(texts, ["the dog my cat", "my cat the dog"]);
}

/// Scores of the ten pairs by which the rule was first looked at: six opposites and four paraphrases.
#[test]
fn opposites_fall_and_paraphrases_stay() {
    let pairs = [
        (true, "turn on dark mode", "turn off dark mode"),
        (true, "Team A beats Team B", "Team B beats Team A"),
        (true, "the flight was cancelled", "the flight was not cancelled"),
        (true, "prices rose in May", "prices fell in May"),
        (true, "how to buy a house", "how to sell a house"),
        (true, "five people hurt in a crash", "nine people hurt in a crash"),
        (false, "how do I reset my password", "I forgot my password, how can I get a new one"),
        (false, "the cafe opens at 9 am", "opening time of the cafe is 9 am"),
        (false, "Quake hits L.A.!!", "Earthquake shakes Los Angeles"),
        (false, "the shop is not open", "the shop isn't open"),
    ];
    for (opposed, a, b) in pairs {
        let [counted, plain] =
            [Method::PolarityBlend, Method::CoverageBlend].map(|m| score(m, a, b));
        assert_eq!(counted < plain, opposed, "{a} | {b}: {counted} of {plain}");
        if opposed {
            assert!(counted < plain - 0.15 * plain.powi(4), "{a} | {b}: {counted} of {plain}");
        } else {
            assert_eq!(counted.to_bits(), plain.to_bits(), "{a} | {b}");
        }
    }
}

#[test]
fn the_score_is_the_formula() {
    let (a, b) =
        ("turn on dark mode in 5 apps", "turn off dark mode in 7 apps of the phone please");
    let plain = f64::from(score(Method::CoverageBlend, a, b));
    let words = (7.0 + 11.0) / 2.0;
    let expected = plain - (8.0_f64 / words).min(1.0) * (0.4 + 0.3) * plain.powi(4);
    assert!((f64::from(score(Method::PolarityBlend, a, b)) - expected).abs() < 1e-6);
}

#[test]
fn a_ranking_lowers_as_a_pair_does_and_opposites_can_be_ignored() {
    let texts = ["turn off dark mode", "turn on dark mode", "dark mode", "never turn on dark mode"];
    let query = Query::new(Method::PolarityBlend);
    let ranking = engine().rank("turn on dark mode", &texts, &query).unwrap();
    for ranked in &ranking.results {
        let alone = score(Method::PolarityBlend, "turn on dark mode", texts[ranked.index]);
        assert_eq!(ranked.score.to_bits(), alone.to_bits());
    }
    let kinds = engine().opposes_each("turn on dark mode", &texts, &query).unwrap();
    let opposed: Vec<bool> = kinds.iter().map(|kinds| !kinds.is_empty()).collect();
    assert_eq!(opposed, [true, false, false, true]);
    let ignoring = Query { opposites: Some(Opposites::Ignore), ..query };
    let plain = Query::new(Method::CoverageBlend);
    let [ignored, plain] =
        [ignoring, plain].map(|query| engine().rank("turn on dark mode", &texts, &query).unwrap());
    assert_eq!(ignored.results, plain.results);
    // What a method that counts them found for the score is told; for others they are looked for.
    for method in [Method::CoverageBlend, Method::PolarityBlend] {
        let asked = Query { opposes: true, ..Query::new(method) };
        let pairs = [
            ("turn it on", "turn it off"),
            ("a dog", "a bone"),
            ("a dog", ""),
            ("not a dog", "5 dogs, not 3"),
            ("2 dogs", "not 3 dogs"),
            ("a dog", "a dog"),
        ];
        let scores = engine().similarity(&pairs, &asked).unwrap();
        let told: Vec<Vec<_>> = scores.opposes.iter().map(|kinds| kinds.iter().collect()).collect();
        let both = vec![OppositionKind::Negation, OppositionKind::Number];
        let antonym = vec![OppositionKind::Antonym];
        assert_eq!(told, [antonym, vec![], vec![], vec![], both, vec![]], "{method:?}");
    }
}

#[test]
fn counting_is_refused_where_a_method_does_not_count() {
    let query = Query { opposites: Some(Opposites::Count), ..Query::new(Method::AvgCos) };
    let refused = engine().similarity(&[("a dog", "a cat")], &query).unwrap_err();
    assert_eq!(refused, QueryError::OppositesNotCounted { method: "avg-cos" });
    assert!(refused.to_string().contains("polarity-blend"), "{refused}");
    let counted = Query { method: Method::PolarityBlend, ..query };
    engine().check(&counted).unwrap();
}

#[test]
fn auto_counts_opposites_where_the_model_knows_them() {
    let without = support::tiny_model();
    let section = fit(&without.vocabulary(), support::POLARITY.lines()).unwrap();
    let with = support::with_sections(&without, &[section]);
    assert_eq!(
        Auto::from_model(&without).method,
        Auto::from_model(&with).method,
        "no method that counts is meant"
    );
    assert_eq!(engine().auto(), Method::PolarityBlend);
    let lacking = Engine::new(without).unwrap();
    let missing = lacking.unavailable(Method::PolarityBlend).unwrap();
    assert!(missing.to_string().contains("--polarity"), "{missing}");
    let told = lacking.opposes("new york", "york", &Query::new(Method::AvgCos)).unwrap_err();
    assert!(matches!(told, QueryError::OppositesUnknown { .. }));
    let ignoring =
        Query { opposites: Some(Opposites::Ignore), ..Query::new(Method::PolarityBlend) };
    lacking.check(&ignoring).unwrap();
}

#[test]
fn names_are_told_whole_and_can_be_left_out_of_what_counts() {
    let (a, b) =
        ("Prime Minister Angela Merkel visits Kiev", "Prime Minister Donald Tusk visits Kiev");
    let query = Query::new(Method::PolarityBlend);
    let told = engine().opposes(a, b, &query).unwrap();
    let runs = |side: usize| -> Vec<&str> {
        told[0].words[side].iter().map(|word| word.token.as_str()).collect()
    };
    assert_eq!((told.len(), told[0].kind), (1, OppositionKind::Name));
    assert_eq!((runs(0), runs(1)), (vec!["angela", "merkel"], vec!["donald", "tusk"]));
    let without = query.with_opposites(Some(Opposites::WithoutNames));
    assert_eq!(engine().opposes(a, b, &without).unwrap(), []);
    assert_eq!(engine().opposes_each(a, &[b], &without).unwrap()[0].iter().count(), 0);
    let asked = Query { threshold: Some(0.1), opposes: true, ..without };
    let pairs = [(a, b), ("turn on dark mode", "turn off dark mode")];
    let answer = engine().similarity(&pairs, &asked).unwrap();
    assert_eq!(answer.related, [true, false]);
    assert!(answer.opposes[0].is_empty() && answer.opposes[1].contains(OppositionKind::Antonym));
    assert_eq!(answer.scores[0], score(Method::CoverageBlend, a, b));
    assert!(score(Method::PolarityBlend, a, b) < answer.scores[0]);
}

#[test]
fn aliases_of_ones_own_are_added_to_the_names_of_a_model() {
    let told =
        |engine: &Engine, (a, b)| engine.opposes(a, b, &Query::new(Method::AvgCos)).unwrap().len();
    let (c, d) = ("Quarkum is down again", "Zorbex is down again");
    assert_eq!(told(engine(), (c, d)), 1);
    let own = fit_names(engine().model(), ["# ours", "same\tquarkum zorbex"]).unwrap();
    let twice = Engine::new(support::with_sections(engine().model(), &[own])).unwrap();
    assert_eq!((told(&twice, (c, d)), told(&twice, (OPPOSED[18].1, OPPOSED[18].2))), (0, 1));
    let again = fit_names(twice.model(), ["same\tquarkum zorbex"]).unwrap();
    assert_eq!(again, fit_names(twice.model(), ["same\tquarkum zorbex", ""]).unwrap());
}

#[test]
fn names_of_other_languages_are_told_and_german_nouns_are_none() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/multilingual.safetensors");
    let engine = Engine::open(path.as_ref(), &Default::default()).unwrap();
    let told = |a: &str, b: &str| {
        let told = engine.opposes(a, b, &Query::new(Method::PolarityBlend)).unwrap();
        told.iter().any(|opposition| opposition.kind == OppositionKind::Name)
    };
    for (a, b) in [
        ("La oficina de Madrid cierra en agosto", "La oficina de Sevilla cierra en agosto"),
        ("La réunion est lundi", "La réunion est jeudi"),
        ("voli economici per Roma", "voli economici per Parigi"),
        ("Aardbeving treft Chili", "Aardbeving treft Nepal"),
        ("A filha de Carla estuda medicina", "A filha de Teresa estuda medicina"),
        ("Erdbeben erschüttert Chile", "Erdbeben erschüttert Nepal"),
        ("Die Sitzung ist am Montag", "Die Sitzung ist am Donnerstag"),
        ("the hunt for Osama bin Laden is over", "the hunt for Joseph Kony is over"),
    ] {
        assert!(told(a, b), "{a} | {b}");
    }
    for (a, b) in [
        ("Ein Mann taucht in einen Pool", "Ein Mann taucht in einen Swimmingpool"),
        ("Eine Küche mit Holzschränken und Esstisch", "Eine Küche mit Schränken und Möbeln"),
        ("Un terremoto sacude Chile", "Ein Erdbeben erschüttert Chile"),
        ("Turkije verhoogt de rente", "La Turquie relève ses taux d'intérêt"),
        ("Protestas en Egipto", "Protests in Egypt"),
    ] {
        assert!(!told(a, b), "{a} | {b}");
    }
}

#[test]
fn a_list_of_names_that_cannot_be_understood_is_refused_and_a_damaged_section_named() {
    let model = support::tiny_model();
    let polarity = fit(&model.vocabulary(), support::POLARITY.lines()).unwrap();
    let refused = |list: &str| fit_names(&model, list.lines()).unwrap_err().problem;
    assert!(refused("same\tnew york").contains("neither the list nor the model"));
    assert!(refused("name\tplace\tyork\nplaces\tyork").starts_with("line 2: "));
    assert!(refused("name\tcity\tyork").contains("`city`"));
    assert!(refused("same york").contains("not understood"));
    assert!(refused("joined\tyork").contains("`york`"));
    let damaged = |change: fn(&mut Fitted)| {
        let mut names = fit_names(&model, ["name\tplace\tyork", "same\tyork new"]).unwrap();
        change(&mut names);
        let made = support::with_sections(&model, &[polarity.clone(), names]);
        Engine::new(made).err().map(|error| error.to_string())
    };
    assert_eq!(damaged(|_| ()), None);
    for change in [
        |names: &mut Fitted| names.bytes[0].1[0] = 7,
        |names: &mut Fitted| names.bytes[0].1.truncate(3),
        |names: &mut Fitted| names.bytes[1].1[0] = 0xFF,
        |names: &mut Fitted| names.bytes[1].1[0] = b'x',
        |names: &mut Fitted| names.bytes.truncate(1),
    ] {
        let problem = damaged(change).unwrap();
        assert!(problem.contains(NAMES_SECTION), "{problem}");
    }
}

#[test]
fn a_list_that_cannot_be_understood_is_refused_by_line() {
    let model = support::tiny_model();
    let refused = |list: &str| fit(&model.vocabulary(), list.lines()).unwrap_err().problem;
    assert!(refused("the\tnegates\nquake").starts_with("line 2: "));
    assert!(refused("the\tdances").contains("`dances`"));
    assert!(refused("new\tcounts").contains("needs a number"));
    assert!(refused("new\tcounts\t-5").contains("whole number"));
    assert!(refused("new\tcounts\t16777217").contains("whole number"));
    assert!(refused("the\tnegates\t5").contains("no third field"));
    assert!(refused("-\tnegates").contains("expected a word"));
    assert!(refused("-er\tcounts\t4").contains("cannot do"));
    assert!(refused("# nothing").contains("no word"));
    assert!(refused("quake\topposite\tquake\nthe\tnegates").contains("no opposites"));
}

/// The tiny model with a section that was changed.
fn changed(change: impl FnOnce(&mut Fitted)) -> Result<Engine, String> {
    let model: Model = support::tiny_model();
    let mut section = fit(&model.vocabulary(), support::POLARITY.lines()).unwrap();
    change(&mut section);
    Engine::new(support::with_sections(&model, &[section])).map_err(|error| error.to_string())
}

#[test]
fn a_damaged_section_is_named_and_never_believed() {
    let engine = changed(|_| ()).unwrap();
    assert!(engine.unavailable(Method::PolarityBlend).is_none());
    let damage = |change: fn(&mut Fitted)| {
        let problem = changed(change).err().unwrap();
        assert!(problem.contains(SECTION), "{problem}");
    };
    // A row beyond the vocabulary, below it, between two, and none.
    damage(|section| section.tensors[0].2[0] = support::WORDS.len() as f32);
    damage(|section| section.tensors[0].2[0] = -1.0);
    damage(|section| section.tensors[1].2[0] = 0.5);
    damage(|section| section.tensors[1].2[1] = f32::from_bits(0x4b80_0000));
    // What no word does, numbers that are not whole or too large.
    damage(|section| section.tensors[0].2[1] = 9.0);
    damage(|section| section.tensors[0].2[8] = 2e9);
    damage(|section| section.tensors[0].2[8] = 0.25);
    // A word that is its own opposite.
    damage(|section| section.tensors[1].2[1] = section.tensors[1].2[0]);
    // Tables of another shape, and none.
    damage(|section| section.tensors[1].1 = vec![1, 2, 1]);
    damage(|section| section.tensors.truncate(1));
    damage(|section| section.tensors.truncate(0));
    // Settings.
    damage(|section| section.settings = r#"{"name":1.5}"#.to_owned());
    damage(|section| section.settings = r#"{"roles":-0.1}"#.to_owned());
    damage(|section| section.settings = r#"{"words":0}"#.to_owned());
    damage(|section| section.settings = r#"{"endings":[""]}"#.to_owned());
    damage(|section| section.settings = r#"{"weight":0.5}"#.to_owned());
}
