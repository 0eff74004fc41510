//! Where the asker itself has no memory for a graph: nobody else is asked, and windows are no longer than it has room for.

use codec::Code;
use graph::net::WorldConfig;
use graph::{
    Class, Executor, ExecutorConfig, LinkEnd, Links, Message, Place, Report, Rules, Scheme, Task,
    TaskCommand, TaskConfig, Why,
};
use types::Time;

use crate::support::{Cluster, sources, to_asker};

const LEN: u32 = 4 << 20;

/// A task to make a chunk of 4 MiB over links of 0.1 Gbit/s.
fn task(scheme: Scheme, flow_bytes: u64) -> Task {
    let links = Links::uniform(LinkEnd::symmetric(0.1, 25.0));
    let code = Code::rs(3, 2).unwrap();
    let cluster = Cluster::new(code.clone(), &[LEN], WorldConfig::new(links.clone()), 1);
    let config = cluster.config(to_asker(&[1]), scheme);
    let config = TaskConfig { class: Class::Repair, flow_bytes, ..config };
    Task::new(config, sources(&code, &[1]), Time(0), &links)
}

fn places(task: &mut Task, is_meant: impl Fn(&Message) -> bool) -> Vec<Place> {
    let mut places = Vec::new();
    while let Some(TaskCommand::Send { to, message }) = task.poll_command() {
        assert!(is_meant(&message), "{message:?}");
        places.push(to);
    }
    places
}

#[test]
fn a_graph_that_the_asker_has_no_room_for_is_sent_to_nobody() {
    let mut task = task(Scheme::Chain, u64::MAX);
    let Some(TaskCommand::Send { to: Place::Asker, message: Message::Start(graph) }) = task.poll_command()
    else {
        panic!("the asker's own executor is the first")
    };
    let executor = |memory_bytes| {
        Executor::new(ExecutorConfig { memory_bytes, reader_reserve_bytes: 0, rules: Rules::all() })
    };
    let has_room = |memory_bytes| executor(memory_bytes).has_room(&graph, Place::Asker);
    assert_eq!([2 << 20, 64 << 20].map(has_room), [false, true]);
    let links = Links::default();
    task.handle_report(Time(1), Place::Asker, graph.run, Report::Failed(Why::NoRoom), 1, &links);
    assert_eq!(places(&mut task, |message| matches!(message, Message::Cancel(_))), [Place::Asker]);
    let again = task.poll_timeout().expect("it waits for room");
    task.handle_timeout(again, &links);
    let started = places(&mut task, |message| matches!(message, Message::Start(_)));
    assert_eq!(started.len(), graph.places().len(), "there may be room by now");
}

#[test]
fn windows_are_no_longer_than_what_may_be_on_its_way_to_the_asker() {
    for scheme in [Scheme::Star, Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri] {
        let coming = |flow_bytes| {
            let task = task(scheme, flow_bytes);
            let (graph, _) = task.newest().unwrap();
            let at = |step: u32| graph.steps[step as usize].at;
            let edges = graph.edges.iter().filter(|edge| at(edge.to) == Place::Asker);
            edges.count() as u64 * u64::from(graph.window) * u64::from(graph.slice_len)
        };
        assert!(coming(1 << 20) <= 1 << 20, "{scheme}");
        assert!(coming(1) > 0, "{scheme}: slices have a least length");
    }
}
