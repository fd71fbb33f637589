//! Command lines against what Python compiles them to, and everything that is refused.

use ccgym_link::ElementSpec;
use serde::Deserialize;

use super::*;

/// Made with `NetworkPath.from_mahimahi(words).spec()`.
const COMMANDS: &str = include_str!("../../tests/data/mahimahi_commands.json");

#[derive(Deserialize)]
struct Row {
    words: Vec<String>,
    uplink: Vec<ElementSpec>,
    downlink: Vec<ElementSpec>,
}

fn words(text: &str) -> Vec<String> {
    text.split('|').flat_map(|part| part.split_ascii_whitespace()).map(str::to_owned).collect()
}

#[test]
fn commands_compile_to_what_python_makes_of_them() {
    let rows: Vec<Row> = serde_json::from_str(COMMANDS).unwrap();
    assert!(rows.len() > 20);
    for row in rows {
        let parsed = parse(&row.words).unwrap_or_else(|error| panic!("{:?}: {error}", row.words));
        assert_eq!(parsed.uplink, row.uplink, "{:?}", row.words);
        assert_eq!(parsed.downlink, row.downlink, "{:?}", row.words);
        assert!(parsed.command.is_empty(), "{:?}", row.words);
        for way in parsed.links.iter().flat_map(|link| &link.directions) {
            let elements = if way.up { &parsed.uplink } else { &parsed.downlink };
            assert!(matches!(elements[way.element], ElementSpec::Link { .. }), "{:?}", row.words);
        }
        // The same with a command behind it.
        let with_command = [row.words.clone(), words("-- iperf3 -c $MAHIMAHI_BASE --once")].concat();
        let parsed = parse(&with_command).unwrap_or_else(|error| panic!("{with_command:?}: {error}"));
        assert_eq!((parsed.uplink, parsed.downlink), (row.uplink, row.downlink), "{with_command:?}");
        assert_eq!(parsed.command, words("iperf3 -c $MAHIMAHI_BASE --once"), "{with_command:?}");
    }
}

#[test]
fn the_command_begins_where_the_tools_end() {
    for (line, command) in [
        ("mm-delay 5 ping -c 3 host", "ping -c 3 host"),
        ("mm-delay 5 -- ping -c 3 host", "ping -c 3 host"),
        ("mm-link a b cat x", "cat x"),
        ("mm-link a b cat --uplink-log=f x", "cat x"),
        ("mm-link a b -- cat --uplink-log=f x", "cat --uplink-log=f x"),
        ("mm-loss uplink 0.1 mm-link a b --once -- mm-delay 5 sh -c true", "sh -c true"),
        ("mm-delay 5 mm-webreplay folder", "mm-webreplay folder"),
        ("mm-meter mm-delay 5 /usr/bin/mm-delay 6", "/usr/bin/mm-delay 6"),
    ] {
        let parsed = parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(parsed.command, words(command), "{line}");
    }
}

#[test]
fn links_know_their_logs_their_place_and_what_surrounds_them() {
    let line = "mm-delay 20 mm-link up down -u u.log --once mm-loss uplink 0.01 mm-link a b --downlink-log=d.log";
    // getopt gives the log option to the outer link; `--` keeps it.
    let parsed = parse(&words(&line.replace(" mm-loss", " -- mm-loss"))).unwrap();
    assert_eq!(parsed.label, "[delay 20 ms] [link] [loss up=0.01] [link] ");
    let [outer, inner] = &parsed.links[..] else { panic!("{:?}", parsed.links) };
    assert_eq!((outer.once, outer.outer.as_deref()), (true, Some("[delay 20 ms] ")));
    assert_eq!((inner.once, inner.outer.as_deref()), (false, Some("[delay 20 ms] [link] [loss up=0.01] ")));
    assert_eq!(inner.command_line, "'mm-link' 'a' 'b' '--downlink-log=d.log'");
    let places = |link: &LinkUse| -> Vec<_> { link.directions.iter().map(|way| (way.up, way.element)).collect() };
    // Upwards a packet meets inner link, loss, outer link, delay; downwards delay, outer link, inner link.
    assert_eq!((places(outer), places(inner)), (vec![(true, 2), (false, 1)], vec![(true, 0), (false, 2)]));
    assert_eq!(outer.directions[0].log.as_deref(), Some("u.log".as_ref()));
    assert_eq!(inner.directions[1].log.as_deref(), Some("d.log".as_ref()));
    assert_eq!(outer.directions[1].log, None);
}

#[test]
fn queues_are_named_as_in_mahimahis_logs() {
    for (options, queue) in [
        ("", "infinite"),
        ("--uplink-queue=droptail --uplink-queue-args=packets=2", "droptail [packets=2]"),
        ("--uplink-queue=drophead --uplink-queue-args=packets=2,bytes=9000", "drophead [bytes=9000, packets=2]"),
        ("--uplink-queue=codel --uplink-queue-args=packets=100,target=5,interval=100", "codel [packets=100]"),
        ("--uplink-queue=pie --uplink-queue-args=bytes=100,qdelay_ref=5,max_burst=100", "pie [bytes=100]"),
    ] {
        let parsed = parse(&words(&format!("mm-link a b {options}"))).unwrap();
        assert_eq!(parsed.links[0].directions[0].queue, queue);
        assert_eq!(parsed.links[0].directions[1].queue, "infinite");
    }
}

#[test]
fn meters_are_accepted_with_a_notice() {
    let parsed = parse(&words("mm-meter --meter-uplink -- mm-link a b --meter-all")).unwrap();
    assert_eq!(parsed.notes.len(), 2, "{:?}", parsed.notes);
    assert!(parsed.notes.iter().all(|note| note.contains("no effect")));
}

#[test]
fn chains_are_of_finite_length() {
    let error = parse(&words(&"mm-delay 1 ".repeat(101))).unwrap_err().to_string();
    assert!(error.contains("word 201") && error.contains("at most 100"), "{error}");
    assert_eq!(parse(&words(&"mm-delay 1 ".repeat(100))).unwrap().uplink.len(), 100);
}

proptest::proptest! {
    #[test]
    fn no_command_line_makes_it_panic(picks in proptest::collection::vec((0..40usize, "\\PC{0,6}"), 0..20)) {
        let known = [
            "mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter", "uplink", "downlink", "5", "0.1", "a",
            "--", "-", "-u", "-d", "-uü", "--once", "--uplink-queue", "--uplink-queue=droptail", "--uplink-queue-args",
            "--uplink-queue-args=packets=5", "--downlink-queue=pie", "--downlink-queue-args=bytes=5,qdelay_ref=1,max_burst=2",
            "--downlink-log=x", "--meter-all", "packets=",
        ];
        let words: Vec<String> =
            picks.into_iter().map(|(i, other)| known.get(i).map_or(other, |word| (*word).to_owned())).collect();
        let _ = parse(&words);
        let _ = crate::shell::options::Options::parse(&words);
    }
}

#[test]
fn errors_say_which_word_what_and_what_was_meant() {
    for (line, parts) in [
        ("", &["no words", "mm-delay"][..]),
        ("mm-dealy 5", &["word 1:", "\"mm-dealy\"", "did you mean \"mm-delay\"?"]),
        ("ping host", &["word 1:", "\"ping\"", "a first tool"]),
        ("mm-delay 5 mm-lnik a b", &["word 3:", "did you mean \"mm-link\"?"]),
        ("mm-delay 5 --once", &["word 3:", "the option \"--once\""]),
        ("mm-delay 1.5", &["word 2 (mm-delay)", "\"1.5\"", "whole milliseconds"]),
        ("mm-delay 51ms", &["word 2 (mm-delay)", "write it without unit: mm-delay 51"]),
        ("mm-delay", &["after the last", "the end of the command"]),
        ("mm-delay 99999999999", &["at most 10000000000"]),
        ("mm-loss uplin 0.1", &["word 2 (mm-loss)", "did you mean \"uplink\"?"]),
        ("mm-loss uplink 5%", &["word 3 (mm-loss)", "write 0.05"]),
        ("mm-loss uplink 1.5", &["a fraction from 0 to 1", "write 0.015"]),
        ("mm-onoff uplink 1s 1", &["MEAN_ON \"1s\"", "without unit"]),
        ("mm-intermittent uplink 1 0", &["OFF \"0\"", "above zero"]),
        ("mm-link a", &["word 1 (mm-link)", "1 trace", "two traces"]),
        ("mm-link mm-delay 5", &["\"mm-delay\" as trace"]),
        ("mm-link a b --uplink-quue=droptail", &["word 4 (mm-link)", "did you mean \"--uplink-queue\"?"]),
        ("mm-link a b --uplink-queue=dropstail", &["--uplink-queue)", "did you mean \"droptail\"?"]),
        ("mm-link a b --uplink-queue=droptail", &["droptail without a limit", "packets=100"]),
        ("mm-link a b --uplink-queue-args=packets=5", &["the infinite queue takes none", "--uplink-queue=droptail?"]),
        ("mm-link a b --uplink-queue=droptail --uplink-queue-args=packet=5", &["did you mean \"packets\"?"]),
        ("mm-link a b --uplink-queue=droptail --uplink-queue-args=target=5", &["mahimahi ignores it silently"]),
        ("mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=5.5", &["mahimahi cuts decimals"]),
        ("mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=0", &["takes 0 for not given"]),
        ("mm-link a b --uplink-queue=codel --uplink-queue-args=packets=5,target=5", &["codel without interval"]),
        ("mm-link a b mm-link c d --once", &["word 7 (mm-link)", "behind an inner mm-link"]),
        ("mm-link a b --once=1", &["--once without a value"]),
        ("mm-link a b --uplink-queue=droptail --uplink-queue=droptail", &["a second time"]),
        ("mm-link a b --uplink-log", &["the end of the command", "a value after --uplink-log"]),
        ("mm-link a b --uplink-log=", &["an empty file name"]),
        ("mm-link a b iperf3 -c host", &["the option \"-c\" of the command \"iperf3\"", "-- iperf3"]),
        ("mm-meter --meter-all", &["unknown option \"--meter-all\""]),
    ] {
        let error = parse(&words(line)).err().unwrap_or_else(|| panic!("{line} was accepted")).to_string();
        for part in parts {
            assert!(error.contains(part), "{line}: {part:?} is not in\n{error}");
        }
    }
}
