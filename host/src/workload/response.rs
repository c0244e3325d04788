//! Sends one request to a workload cluster and reads the response, whatever it is: so many bytes, so much
//! time, no other encoding, no other place than was asked. Nothing of it is shown but a Status' message.

use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::budget::{Hold, LARGE, Size};
use super::parts::{Page, PageReader, Parts, Reader, Room};
use super::sanitize::{causes, fields, plain, quoted};

/// What is read of an answer that says what is wrong.
const STATUS_BYTES: usize = 64 << 10;
/// What is kept of one object at most, which is not yet gone when others are asked for.
const OBJECT: usize = 8 << 20;
/// A text longer than this is read apart from the thread that all share.
const QUICK: usize = 16 << 10;

/// Why there is no answer that can be used.
#[derive(Debug)]
pub(super) enum Failure {
    /// The API server refused: what it says, in quotes, the fields that it names as wrong, and what it says
    /// of each, to decide by.
    Refused { code: u16, message: String, fields: Vec<String>, causes: Vec<addons::Cause> },
    /// The answer is larger than any may be: perhaps less can be asked for.
    TooLarge,
    /// No answer, or not one of the API.
    None(String),
}

/// What an API server answers when it refuses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Option<Vec<Cause>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

/// Asks for one value, and keeps these parts of it.
pub(super) async fn value(
    client: &Client,
    request: http::Request<Vec<u8>>,
    parts: &Parts,
    hold: &mut Hold<'_>,
) -> Result<Value, Failure> {
    let answer = read(client, request, hold, (parts, OBJECT), |reader, text| {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let value = reader.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    });
    answer.await?.ok_or_else(|| Failure::None("its answer is no object".into()))
}

/// Asks for one page of a list, and keeps these parts of each item.
pub(super) async fn page(
    client: &Client,
    request: http::Request<Vec<u8>>,
    parts: &Parts,
    hold: &mut Hold<'_>,
) -> Result<Page, Failure> {
    let answer = read(client, request, hold, (parts, LARGE.kept), |reader, text| {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let page = PageReader(reader).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(page)
    });
    answer.await
}

/// Asks for something to be done. Nothing is kept of the answer, which is the object as it is by now.
pub(super) async fn done(
    client: &Client,
    request: http::Request<Vec<u8>>,
    hold: &mut Hold<'_>,
) -> Result<(), Failure> {
    hold.begin().await;
    let until = Instant::now() + hold.answer_time();
    let mut body = Limited::new(begin(client, request, until).await?, LARGE.text);
    while let Some(frame) = timeout_at(until, body.frame()).await.map_err(|_| late())? {
        match frame {
            Ok(_) => (),
            // It was done all the same.
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return Ok(()),
            Err(error) => return Err(Failure::None(cause(&*error))),
        }
    }
    Ok(())
}

async fn read<T: Send + 'static>(
    client: &Client,
    request: http::Request<Vec<u8>>,
    hold: &mut Hold<'_>,
    (parts, most): (&Parts, usize),
    parse: fn(Reader<'_>, &[u8]) -> serde_json::Result<T>,
) -> Result<T, Failure> {
    let mut size = hold.begin().await;
    let mut until = Instant::now() + hold.answer_time();
    let mut body = begin(client, request, until).await?;
    let mut text = Vec::new();
    loop {
        let end = hold.until().map_or(until, |it| it.min(until));
        let Some(frame) = timeout_at(end, body.frame()).await.map_err(|_| late())? else { break };
        let frame = frame.map_err(|it| Failure::None(cause(&it)))?;
        let Ok(data) = frame.into_data() else { continue };
        if text.len() + data.len() > size.text && !hold.is_large() {
            (size, until) = enlarge(hold, until).await;
            // A list that grows by doubling would have three times as much for a moment.
            text.reserve_exact(size.text - text.len());
        }
        if text.len() + data.len() > size.text {
            return Err(Failure::TooLarge);
        }
        text.extend_from_slice(&data);
    }
    drop(body);
    loop {
        let (parsed, back) = apart(text, parts.clone(), size.kept.min(most), parse).await?;
        match parsed {
            Ok((answer, kept)) => {
                hold.keep(kept);
                return Ok(answer);
            }
            // Small values take many times the room of their text.
            Err(Flaw::Full) if !hold.is_large() => {
                text = back;
                (size, _) = enlarge(hold, until).await;
            }
            Err(Flaw::Full) => return Err(Failure::TooLarge),
            Err(Flaw::Malformed(why)) => return Err(Failure::None(why)),
        }
    }
}

/// Waits for room, during which the time of the answer stands still.
async fn enlarge(hold: &mut Hold<'_>, until: Instant) -> (Size, Instant) {
    let began = Instant::now();
    let size = hold.enlarge().await;
    (size, until + began.elapsed())
}

enum Flaw {
    Full,
    Malformed(String),
}

/// Reads a text where it holds up nobody, and gives it back.
async fn apart<T: Send + 'static>(
    text: Vec<u8>,
    parts: Parts,
    most: usize,
    parse: fn(Reader<'_>, &[u8]) -> serde_json::Result<T>,
) -> Result<(Result<(T, usize), Flaw>, Vec<u8>), Failure> {
    let is_short = text.len() <= QUICK;
    let read = move || {
        let room = Room::new(most);
        let parsed = match parse(Reader { parts: &parts, room: &room }, &text) {
            Ok(answer) => Ok((answer, most - room.left())),
            Err(_) if room.is_full() => Err(Flaw::Full),
            Err(error) => Err(Flaw::Malformed(malformed(&error))),
        };
        (parsed, text)
    };
    if is_short {
        return Ok(read());
    }
    tokio::task::spawn_blocking(read).await.map_err(|it| Failure::None(it.to_string()))
}

/// Sends the request, and gives the body of an answer that says that it was done.
async fn begin(client: &Client, request: http::Request<Vec<u8>>, until: Instant) -> Result<Body, Failure> {
    let sent = timeout_at(until, client.send(request.map(Body::from))).await.map_err(|_| late())?;
    let (head, body) = sent.map_err(|it| Failure::None(cause(&it)))?.into_parts();
    let encoding = head.headers.get(http::header::CONTENT_ENCODING);
    if encoding.is_some_and(|it| it != "identity") {
        return Err(Failure::None("its answer is compressed, and it was not asked to do so".into()));
    }
    let code = head.status.as_u16();
    match code {
        200..300 => Ok(body),
        400.. => Err(refused(code, body, until).await?),
        _ => Err(Failure::None(format!(
            "it answers with HTTP {code}, and whatever place it names is not asked instead"
        ))),
    }
}

async fn refused(code: u16, body: Body, until: Instant) -> Result<Failure, Failure> {
    let read = timeout_at(until, Limited::new(body, STATUS_BYTES).collect()).await.map_err(|_| late())?;
    let status: Option<Status> = read.ok().and_then(|it| serde_json::from_slice(&it.to_bytes()).ok());
    let Status { message, details } = status.unwrap_or_default();
    let message =
        message.filter(|it| !it.is_empty()).map_or_else(|| format!("HTTP {code}"), |it| quoted(&it));
    let all = details.and_then(|it| it.causes).unwrap_or_default();
    let causes = causes(all.iter().map(|it| (it.reason.as_deref(), it.message.as_deref())));
    Ok(Failure::Refused { code, message, fields: fields(all.into_iter().filter_map(|it| it.field)), causes })
}

fn late() -> Failure {
    Failure::None("its answer takes too long".to_owned())
}

/// What is wrong, without what the answer holds.
fn malformed(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "ends too early",
        serde_json::error::Category::Data => "is not of the form that was asked for",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
            "is no JSON, or nested too deep"
        }
    };
    format!("its answer {what} (line {}, column {})", error.line(), error.column())
}

/// The innermost cause says why: `connection refused`, `certificate has expired`.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    plain(&cause.to_string())
}
