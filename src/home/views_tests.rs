use super::*;
use crate::home::testing::{self, Place};

fn link(place: &Place, target: &str, at: &str) {
    let path = place.home.root().join(at);
    disk::create_private_folder(path.parent().unwrap()).unwrap();
    disk::symlink(target.as_ref(), &path).unwrap();
}

fn follow_all(place: &Place) -> Views {
    let home = place.locked("label");
    follow(&home, &Index::read(&home).unwrap(), None).unwrap()
}

#[test]
fn links_follow_the_index_and_foreign_files_stay() {
    let place = testing::home();
    place.put(
        "index.json",
        r#"[{"id": "数据", "project": "alpha"}, {"id": "b", "project": "新"}, {"id": "c", "project": "alpha", "status": "archived"},
            {"id": "d", "project": "../../x"}, {"id": "../../e", "project": "alpha"}, {"id": "f", "project": "file"}, {"id": "g", "project": "alpha"}]"#,
    );
    let absolute = place.home.sessions().join("数据");
    link(&place, absolute.to_str().unwrap(), "projects/alpha/数据");
    link(&place, "../../sessions/b", "projects/alpha/b");
    link(&place, "../../sessions/c", "projects/old/c");
    link(&place, "../../sessions/b", "projects/keep/b");
    link(&place, "/etc", "projects/alpha/etc");
    link(&place, "../../sessions/x", "projects/alpha/another name");
    place.put("projects/keep/notes.md", "");
    place.put("projects/file", "");
    place.put("projects/alpha/g", "in the way");

    let views = follow_all(&place);
    assert_eq!(views.made, ["projects/alpha/数据", "projects/新/b"]);
    assert_eq!(
        views.removed,
        ["projects/alpha/b", "projects/keep/b", "projects/old/c"]
    );
    assert_eq!(
        views.foreign,
        [
            "projects/alpha/another name",
            "projects/alpha/etc",
            "projects/alpha/g",
            "projects/file",
            "projects/keep/notes.md"
        ]
    );
    assert_eq!(views.unusable, ["../../x"]);
    let alpha = Dir::open(place.home.projects().join("alpha")).unwrap();
    let target = alpha.read_link(OsStr::new("数据")).unwrap();
    assert_eq!(target, "../../sessions/数据".as_bytes());
    assert!(!disk::exists(&place.home.projects().join("old")));
    assert!(disk::exists(&place.home.projects().join("keep/notes.md")));

    let again = follow_all(&place);
    assert_eq!((again.made.len(), again.removed.len()), (0, 0));
}

#[test]
fn only_those_that_are_named() {
    let place = testing::home();
    place.put(
        "index.json",
        r#"[{"id": "a", "project": "p"}, {"id": "b", "project": "p"}]"#,
    );
    link(&place, "../../sessions/c", "projects/p/c");
    let home = place.locked("label");
    let index = Index::read(&home).unwrap();
    let views = follow(&home, &index, Some(&["a".to_owned()])).unwrap();
    assert_eq!(views.made, ["projects/p/a"]);
    assert!(views.removed.is_empty() && disk::exists(&home.projects().join("p/c")));
}
