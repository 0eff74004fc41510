use gestalt::{Client, Store, Stored};
use tokio::io::AsyncRead;

/// Stores `len` bytes that come from somewhere, without ever having all of them here.
async fn store(client: &Client, key: &str, len: u64, mut from: impl AsyncRead + Unpin) -> std::io::Result<u64> {
    let mut writer = client.writer(key.to_owned(), len, Store::default()).map_err(std::io::Error::other)?;
    tokio::io::copy(&mut from, &mut writer).await?;
    // Nothing is stored before this; and nothing at all if bytes are missing, or there were too many.
    match writer.finish().await? {
        Stored::Version(version) => Ok(version),
        other => Err(std::io::Error::other(format!("{other:?}"))), // no condition was given
    }
}

/// Reads a value as it comes: how long it is, if there is one.
async fn length(client: &Client, key: &str) -> std::io::Result<Option<u64>> {
    let reader = client.reader(key.to_owned(), None).await.map_err(std::io::Error::other)?;
    let Some(mut reader) = reader else { return Ok(None) };
    Ok(Some(tokio::io::copy(&mut reader, &mut tokio::io::sink()).await?))
}
