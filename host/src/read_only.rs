//! A client of an API server that only reads: whatever is no GET is refused before it is sent. What a command
//! promises not to write then follows from the client that it was given.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request};
use tower::{BoxError, Layer, Service};

/// Lets nothing but GET through.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnlyLayer;

/// A service that was made by it.
#[derive(Clone, Debug)]
pub struct ReadOnly<S>(S);

impl<S> Layer<S> for ReadOnlyLayer {
    type Service = ReadOnly<S>;

    fn layer(&self, inner: S) -> ReadOnly<S> {
        ReadOnly(inner)
    }
}

impl<S, B> Service<Request<B>> for ReadOnly<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.method() != Method::GET {
            let refused =
                format!("{} {} is no read, and is not sent", request.method(), request.uri().path());
            return Box::pin(async { Err(refused.into()) });
        }
        let answer = self.0.call(request);
        Box::pin(async { answer.await.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn nothing_but_reads_is_sent() {
        let answers = ReadOnlyLayer.layer(service_fn(|request: Request<()>| async move {
            Ok::<_, BoxError>(request.uri().clone())
        }));
        let ask = |method: Method| {
            let request = Request::builder().method(method).uri("/api/v1/pods?watch=false").body(());
            answers.clone().oneshot(request.expect("a request"))
        };
        assert_eq!(ask(Method::GET).await.expect("it is read").path(), "/api/v1/pods");
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let refused = ask(method.clone()).await.expect_err("it is sent").to_string();
            assert_eq!(refused, format!("{method} /api/v1/pods is no read, and is not sent"));
        }
    }
}
