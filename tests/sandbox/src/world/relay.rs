//! Lets processes outside reach a TCP port of the world through a Unix socket in the world's directory.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener};

/// Serves `socket` until the world ends; every connection goes to `address`.
///
/// # Errors
/// When the socket cannot be made, for example because its path is longer than 107 bytes.
pub fn serve(socket: &Path, address: &'static str) -> Result<()> {
    let listener =
        UnixListener::bind(socket).with_context(|| format!("listening on {}", socket.display()))?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((mut near, _)) => {
                    tokio::spawn(async move {
                        // Either side may hang up at any time.
                        if let Ok(mut far) = TcpStream::connect(address).await {
                            let _ = copy_bidirectional(&mut near, &mut far).await;
                        }
                    });
                }
                Err(error) => tracing::warn!(%error, address, "a connection was not accepted"),
            }
        }
    });
    Ok(())
}
