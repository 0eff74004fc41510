//! Pipelines: replies in the order of commands, a command sees what the ones before it did to its key.

use crate::harness::Cluster;

#[test]
fn a_pipelined_get_sees_the_set_before_it() {
    let cluster = Cluster::start();
    for node in 0..5 {
        let client = &mut cluster.client(node);
        for i in 0..50 {
            client.send(format!("set p{node} 0 0 4\r\n{i:04}\r\nget p{node}\r\n"));
        }
        for i in 0..50 {
            client.expect(format!("STORED\r\nVALUE p{node} 0 4\r\n{i:04}\r\nEND\r\n"));
        }
    }
}

#[test]
fn replies_keep_the_order_of_commands_of_all_kinds() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    let (mut request, mut reply) = (String::new(), String::new());
    for i in 0..300 {
        request += &format!("set o{i} 0 0 1\r\nx\r\nmn\r\nincr o{i} 1\r\nnonsense\r\nget o{i} nothing\r\n");
        reply += "STORED\r\nMN\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nERROR\r\n";
        reply += &format!("VALUE o{i} 0 1\r\nx\r\nEND\r\n");
    }
    client.ask(&request, &reply);
    client.expect_quiet();
}

#[test]
fn increments_of_one_connection_are_all_done_and_in_order() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(4);
    client.ask("set n 0 0 1\r\n0\r\n", "STORED\r\n");
    client.send("incr n 1\r\n".repeat(500));
    let replies: String = (1..=500).map(|i| format!("{i}\r\n")).collect();
    client.expect(replies);
}

#[test]
fn noreply_commands_are_seen_by_what_follows() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(1);
    client.ask(
        "set q 0 0 1 noreply\r\n1\r\nincr q 1 noreply\r\nget q\r\ndelete q noreply\r\nget q\r\n",
        "VALUE q 0 1\r\n2\r\nEND\r\nEND\r\n",
    );
}

#[test]
fn a_multi_key_get_answers_in_the_order_of_its_keys() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(2);
    for i in 0..200 {
        client.send(format!("set g{i} 0 0 3\r\n{i:03}\r\n"));
    }
    client.expect("STORED\r\n".repeat(200));
    let (mut request, mut reply) = ("get".to_owned(), String::new());
    for i in (0..200).rev() {
        request += &format!(" g{i} missing{i}");
        reply += &format!("VALUE g{i} 0 3\r\n{i:03}\r\n");
    }
    // Twice, the second one behind a write that it must see.
    client.send(format!("{request}\r\nset g7 0 0 3\r\nnew\r\n{request}\r\n"));
    client.expect(&reply);
    client.expect("END\r\nSTORED\r\n");
    client.expect(reply.replace("007", "new"));
    client.expect("END\r\n");
}

#[test]
fn a_get_of_very_many_keys_is_answered() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    client.ask("set 77777 0 0 1\r\nx\r\n", "STORED\r\n");
    let mut request = "get".to_owned();
    for i in 0..100_000 {
        request += &format!(" {i}");
    }
    request += "\r\n";
    client.ask(&request, "VALUE 77777 0 1\r\nx\r\nEND\r\n");
    client.expect_quiet();
}

#[test]
fn flush_all_empties_every_node_and_orders_with_its_neighbours() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(3);
    for i in 0..100 {
        client.send(format!("set f{i} 0 0 1\r\nx\r\n"));
    }
    client.send("flush_all\r\nset after 0 0 1\r\ny\r\nget f1 f2 f3 after\r\n");
    client.expect("STORED\r\n".repeat(100));
    client.expect("OK\r\nSTORED\r\nVALUE after 0 1\r\ny\r\nEND\r\n");
    for node in 0..5 {
        let other = &mut cluster.client(node);
        let all: String = (0..100).map(|i| format!(" f{i}")).collect();
        other.ask(format!("get{all}\r\n"), "END\r\n");
    }
}

#[test]
fn a_stream_cut_anywhere_is_the_same_stream() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(1);
    let request = b"set cut 5 0 8\r\nab\r\ncdef\r\nget cut\r\ngets\r\nmg cut v\r\n";
    for byte in request {
        client.send([*byte]);
    }
    client.expect("STORED\r\nVALUE cut 5 8\r\nab\r\ncdef\r\nEND\r\nCLIENT_ERROR bad command line format\r\nVA 8\r\nab\r\ncdef\r\n");
}
