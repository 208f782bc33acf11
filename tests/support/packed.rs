//! Sessions packed into `archive/`, as `archive` does it and as people did it by hand.

use wbhome::base::{Context, FixedClock, NoProgress, Stop};
use wbhome::disk::{Dir, NewFile};
use wbhome::pack::{self, About, Packed};

use super::Place;

impl Place {
    /// Packs the folder of a session, whose entry in the index goes along. Folder and index stay as they are.
    pub fn pack(&self, id: &str) -> Packed {
        let clock = FixedClock::new("2024-06-10T08:00:00Z".parse().unwrap());
        let stop = Stop::new();
        let context = Context {
            clock: &clock,
            progress: &NoProgress,
            stop: &stop,
        };
        let folder = Dir::open(self.home().join("sessions").join(id)).unwrap();
        let survey = pack::survey(&folder, id, &|_, _| false, &context).unwrap();
        let index = self.index();
        let entry = index.as_array().unwrap().iter().find(|e| e["id"] == id);
        let about = About {
            created_at: "2024-06-10T08:00:00Z".parse().unwrap(),
            entry: entry.map(|entry| entry.as_object().unwrap().clone()),
        };
        let into = Dir::open(self.home().join("archive")).unwrap();
        let mut file = NewFile::create(&into).unwrap();
        let packed = pack::write(file.file(), &folder, survey, about, 3, 1, &context).unwrap();
        file.publish(format!("{id}.tar.zst").as_ref()).unwrap();
        packed
    }

    /// Packs a session, takes its folder away, and lets the index say so.
    pub fn archived(&self, id: &str) -> Packed {
        let packed = self.pack(id);
        std::fs::remove_dir_all(self.home().join("sessions").join(id)).unwrap();
        let mut index = self.index();
        let entries = index.as_array_mut().unwrap();
        let entry = entries.iter_mut().find(|e| e["id"] == id).unwrap();
        entry["status"] = "archived".into();
        entry["archived_at"] = "2024-06-10T08:00:00Z".into();
        entry["archive"] = serde_json::json!({
            "file": format!("archive/{id}.tar.zst"), "bytes": packed.bytes, "blake3": packed.blake3,
        });
        let mut text = serde_json::to_string_pretty(&index).unwrap();
        text.push('\n');
        self.put_home("index.json", text);
        self.ok(["index", "-q"]);
        packed
    }

    /// Packs a session as people do it by hand, with one turn and no folders named.
    pub fn packed_by_hand(&self, id: &str) {
        let mut tar = tar::Builder::new(Vec::new());
        for (rel, content) in [
            (
                "session.json",
                format!("{{\"session_id\": \"by hand\", \"title\": \"一 {id}\"}}"),
            ),
            ("context/turn_001.json", "{\"turn\": 1}\n".to_owned()),
        ] {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(1_717_405_200);
            let path = format!("{id}/{rel}");
            tar.append_data(&mut header, path, content.as_bytes())
                .unwrap();
        }
        let tar = tar.into_inner().unwrap();
        let mut packer = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        packer.include_checksum(true).unwrap();
        std::io::Write::write_all(&mut packer, &tar).unwrap();
        self.put_home(&format!("archive/{id}.tar.zst"), packer.finish().unwrap());
    }
}
