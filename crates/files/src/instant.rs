//! Points in time in the formats of tweets and data files. Which column holds them is not known
//! here.

use time::format_description::StaticFormatDescription;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

pub const FORMS: &str = "RFC 3339, `YYYY-MM-DD`, `YYYY-MM-DD HH:MM:SS`, seconds or milliseconds since \
                         1970, or `Wed Oct 10 20:19:24 +0000 2018`";

/// What [`span`] reads.
pub const SPANS: &str = "a number with s, m, h or d, such as 30s or 24h";
/// What [`lasting_span`] reads.
pub const LASTING_SPANS: &str = "a number from 1 with s, m, h or d, such as 30s or 24h";

/// Numbers from here on are milliseconds: as seconds they would be after the year 5000, as
/// milliseconds this one is in 1973.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

const PLAIN: StaticFormatDescription =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

/// The format of `created_at` in Twitter's first API.
const TWITTER: StaticFormatDescription = format_description!(
    "[weekday repr:short] [month repr:short] [day] [hour]:[minute]:[second] \
     [offset_hour sign:mandatory][offset_minute] [year]"
);

pub const FIELDS: [&str; 4] = ["time", "time_utc", "created_at", "timestamp"];

/// Milliseconds since 1970; UTC if no time zone is given.
pub fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    number(text).or_else(|| {
        let instant = OffsetDateTime::parse(text, &Rfc3339)
            .or_else(|_| {
                PrimitiveDateTime::parse(&to_the_second(text), PLAIN)
                    .map(PrimitiveDateTime::assume_utc)
            })
            .or_else(|_| OffsetDateTime::parse(text, TWITTER));
        i64::try_from(instant.ok()?.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
    })
}

/// A plain time whose seconds or whole hour may be left out, with a space or a `T` before the hour.
fn to_the_second(text: &str) -> String {
    let rest = match text.len() {
        10 => " 00:00:00",
        16 => ":00",
        _ => "",
    };
    format!("{}{rest}", text.replacen('T', " ", 1))
}

/// A duration in milliseconds, written as `30s`, `15m`, `24h` or `7d`.
pub fn span(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = number.parse().ok().filter(|_| digits)?;
    Some(i64::from(number) * seconds * 1000)
}

/// A duration above 0.
pub fn lasting_span(text: &str) -> Option<i64> {
    span(text).filter(|span| *span > 0)
}

/// A duration of whole seconds as [`span`] reads it, in the largest unit that divides it.
pub fn written_span(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let unit = units.into_iter().find(|(length, _)| seconds % length == 0);
    let (length, unit) = unit.unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

const SNOWFLAKE_EPOCH_MS: i64 = 1_288_834_974_657;

/// Milliseconds since 1970 from the upper bits of a Twitter id. Ids before November 2010 were
/// consecutive numbers without a time: `None`.
pub fn of_snowflake(id: &str) -> Option<i64> {
    let number: i64 = id.trim().parse().ok().filter(|&number: &i64| number > 0)?;
    // The consecutive numbers stayed below this number.
    (number >= 29_700_000_000).then(|| (number >> 22).saturating_add(SNOWFLAKE_EPOCH_MS))
}

/// A time in RFC 3339, in UTC to the second; empty for years that RFC 3339 cannot express.
pub fn written(milliseconds: i64) -> String {
    let instant = OffsetDateTime::from_unix_timestamp(milliseconds.div_euclid(1000)).ok();
    let parts = instant.filter(|instant| (0..=9999).contains(&instant.year())).map(|instant| {
        let (year, month, day) = instant.to_calendar_date();
        let (hour, minute, second) = instant.to_hms();
        let month = u8::from(month);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    });
    parts.unwrap_or_default()
}

/// Returns what [`written`] returns, with milliseconds unless the second is whole, or a number of
/// milliseconds if RFC 3339 cannot express the year: [`milliseconds`] restores the exact value.
pub fn written_exactly(milliseconds: i64) -> String {
    let second = written(milliseconds);
    match (second.strip_suffix('Z'), milliseconds.rem_euclid(1000)) {
        (None, _) => milliseconds.to_string(),
        (Some(_), 0) => second,
        (Some(second), fraction) => format!("{second}.{fraction:03}Z"),
    }
}

fn number(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    if whole >= MILLISECONDS_FROM {
        return Some(whole);
    }
    let thousandths = fraction.bytes().chain(*b"000").take(3);
    Some(thousandths.fold(whole, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_one_instant_is_the_same_number() {
        for form in [
            "2018-10-10T20:19:24Z",
            "2018-10-10T22:19:24+02:00",
            "2018-10-10t20:19:24.000z",
            "2018-10-10 20:19:24",
            "1539202764",
            "1539202764.0",
            "1539202764000",
            "Wed Oct 10 20:19:24 +0000 2018",
            "Wed Oct 10 16:19:24 -0400 2018",
            "  2018-10-10 20:19:24 ",
        ] {
            assert_eq!(milliseconds(form), Some(1_539_202_764_000), "{form}");
        }
        for plain in ["2018-10-10T20:19:24", "2018-10-10 20:19:24"] {
            for (length, left_out) in [(19, 0), (16, 24_000), (10, 73_164_000)] {
                let expected = Some(1_539_202_764_000 - left_out);
                assert_eq!(milliseconds(&plain[..length]), expected, "{plain} {length}");
            }
        }
        assert_eq!(milliseconds("1539202764.0625"), Some(1_539_202_764_062));
        assert_eq!(milliseconds("2018-10-10T20:19:24.5Z"), Some(1_539_202_764_500));
        assert_eq!(milliseconds("1969-12-31T23:59:59.5Z"), Some(-500));
        assert_eq!(milliseconds("99999999999"), Some(99_999_999_999_000));
        assert_eq!(milliseconds("100000000000"), Some(100_000_000_000));
    }

    #[test]
    fn spans_have_a_unit() {
        assert_eq!(span("30s"), Some(30_000));
        assert_eq!(span("15m"), Some(900_000));
        assert_eq!(span("24h"), Some(86_400_000));
        assert_eq!(span("7d"), Some(604_800_000));
        for odd in ["", "s", "1", "1 d", "-1s", "+1s", "1.5h", "4294967296s", "1ä", "ä"] {
            assert_eq!(span(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(written(1_539_202_764_999), "2018-10-10T20:19:24Z");
        assert_eq!(written(-1), "1969-12-31T23:59:59Z");
        assert_eq!(written(i64::MAX), "");
        for exact in [0, -1, 5, 1_539_202_764_999, 1_539_202_764_000, i64::MAX] {
            assert_eq!(milliseconds(&written_exactly(exact)), Some(exact));
        }
    }

    #[test]
    fn a_tweet_says_when_it_was_written() {
        // Examples of Twitter's documentation, which gives times to the second.
        for (id, time) in [
            ("1228393702244134912", "2020-02-14T19:00:55Z"),
            ("210462857140252672", "Wed Jun 06 20:07:10 +0000 2012"),
        ] {
            assert_eq!(of_snowflake(id).map(|time| time / 1000 * 1000), milliseconds(time));
        }
        for odd in ["", "20", "-1228393702244134912", "12a", "99999999999999999999"] {
            assert_eq!(of_snowflake(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for odd in [
            "",
            "noon",
            "-5",
            "1.",
            ".5",
            "1e9",
            "2018-10",
            "2018-02-29",
            "2018-02-29T00:00:00Z",
            "2018-10-10T20",
            "2018-10-10 24:19",
            "2018-10-10 24:19:24",
            "Wed Okt 10 20:19:24 +0000 2018",
            "99999999999999999999",
            "9999999999999999999.5",
        ] {
            assert_eq!(milliseconds(odd), None, "{odd}");
        }
    }
}
