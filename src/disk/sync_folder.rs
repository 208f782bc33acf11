//! Whether a folder is one that a sync client carries: what is deleted in it is deleted on every device, and what is
//! written leaves the machine.

use std::path::Path;

/// The folder of a sync client that a path lies in, and which client: by the marks that clients leave in their root,
/// and by the names that they give it.
pub fn sync_folder(path: &Path) -> Option<(&Path, &'static str)> {
    const MARKS: [(&str, &str); 9] = [
        (".dropbox", "Dropbox"),
        (".dropbox.cache", "Dropbox"),
        (".stfolder", "Syncthing"),
        (".nextcloudsync.log", "Nextcloud"),
        (".owncloudsync.log", "ownCloud"),
        (".sync/ID", "Resilio Sync"),
        (".SynologyWorkingDirectory", "Synology Drive"),
        (".tmp.driveupload", "Google Drive"),
        (".tmp.drivedownload", "Google Drive"),
    ];
    const NAMES: [(&str, &str); 14] = [
        ("Dropbox", "Dropbox"),
        ("OneDrive", "OneDrive"),
        ("Google Drive", "Google Drive"),
        ("GoogleDrive", "Google Drive"),
        ("My Drive", "Google Drive"),
        ("Mobile Documents", "iCloud Drive"),
        ("CloudStorage", "a cloud provider"),
        ("iCloudDrive", "iCloud Drive"),
        ("Nextcloud", "Nextcloud"),
        ("ownCloud", "ownCloud"),
        ("Seafile", "Seafile"),
        ("SynologyDrive", "Synology Drive"),
        ("Nutstore Files", "Nutstore"),
        ("我的坚果云", "Nutstore"),
    ];
    for folder in path.ancestors() {
        if let Some((_, client)) = MARKS
            .iter()
            .find(|(mark, _)| super::exists(&folder.join(mark)))
        {
            return Some((folder, client));
        }
        let name = folder.file_name().map(|n| n.to_string_lossy());
        let named = |(known, _): &&(&str, &str)| {
            // `OneDrive - Company`, `Dropbox (Personal)`.
            name.as_deref()
                .and_then(|n| n.strip_prefix(known))
                .is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with(" -") || rest.starts_with(" (")
                })
        };
        if let Some((_, client)) = NAMES.iter().find(named) {
            return Some((folder, client));
        }
    }
    None
}
