use codec::Code;
use graph::*;
use types::*;
fn main() {
    let code = Code::rs(6, 3).unwrap();
    for (gbit, len, scheme) in [(1.0, 1u32 << 20, Scheme::Tri), (100.0, 1 << 18, Scheme::Star), (1.0, 1 << 20, Scheme::Chain), (100.0, 1<<20, Scheme::Chain)] {
        let links = Links::uniform(LinkEnd::symmetric(gbit, 25.0));
        let sources: Vec<Source> = [0, 2, 3, 4, 5, 6, 7, 8].map(|r| Source { role: RoleIndex(r), node: NodeId(r.into()) }).into();
        let wanted = [Wanted { role: RoleIndex(1), to: Place::Asker }];
        let q = Question { code: &code, sources: &sources, wanted: &wanted, len, links: &links, avoided: &[], aim: Aim::READER, execution: Execution::Coherent };
        let s = plan(&q, scheme).unwrap();
        println!("{gbit} {len} {scheme}: slice {} window {} {:?}", s.slice_len, s.window, s.prediction);
        for w in [4, 16] { for p in 10..=20 {
            println!("  w {w} {:>8} {:?}", 1 << p, predict(&s.steps, &s.edges, 1 << p, w, Execution::Coherent, &links));
        } }
        println!("  inc {:?}", predict(&s.steps, &s.edges, 1 << 20, 4, Execution::Incoherent, &links));
    }
}
