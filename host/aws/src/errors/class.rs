//! The classes of AWS's error codes: the only place that knows the codes.

/// Our word for a name or range that something else in AWS has.
pub(crate) const TAKEN: &str = "Taken";

/// Our word for what has to be there first and is not known yet.
pub(crate) const NOT_YET: &str = "NotYetVisible";

/// Kinds of error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Throttled,
    /// A token or the call itself is too old, or clocks differ: another call may bring what is in force.
    Expired,
    /// It has to wait for something else, or is not visible yet.
    NotYet,
    /// Something of that name, range, port or token is there.
    Duplicate,
    /// Somebody else's thing of that name or range is there.
    Taken,
    Denied,
    Quota,
    /// AWS is out of it.
    Capacity,
    Invalid,
    /// AWS's own failure: it may have been done.
    Server,
    Other,
}

/// AWS answers so to a wrong instance profile, with a code that says nothing.
pub(super) fn is_invalid_profile(code: &str, message: &str) -> bool {
    code == "NoSuchEntity"
        || (code.starts_with("InvalidParameterValue") && message.to_lowercase().contains("instance profile"))
}

pub(super) fn is_gone(code: &str) -> bool {
    let absent = [
        "Gateway.NotAttached",
        "InvalidInstance",
        "InvalidTarget",
        "NatGatewayNotFound",
        "ResourceNotFoundException",
    ];
    absent.contains(&code)
        || code.ends_with(".NotFound")
        || code.ends_with("NotFound")
        || code.ends_with("NotFoundException")
}

pub(super) fn class(code: &str) -> Class {
    match code {
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "DependencyThrottle"
        | "TooManyRequests"
        | "TooManyRequestsException"
        | "ConcurrentModification"
        | "ConcurrentModificationException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "SlowDown"
        | "PriorRequestNotComplete"
        | "BandwidthLimitExceeded" => Class::Throttled,
        "RequestExpired"
        | "InvalidSecurity.RequestHasExpired"
        | "RequestTimeTooSkewed"
        | "PaginationTokenExpiredException" => Class::Expired,
        "DependencyViolation"
        | "ResourceInUse"
        | "ResourceInUseException"
        | "IncorrectState"
        | "IncorrectInstanceState"
        | "InvalidIPAddress.InUse"
        | "InvalidGroup.InUse"
        | "Resource.AlreadyAssociated"
        | "ConcurrentTagAccess"
        | "OperationInProgress"
        | "IncorrectNetworkInterfaceState"
        | "InvalidNetworkInterface.InUse"
        // Elastic Load Balancing's words also for groups, subnets and an internet gateway that it does not
        // know of yet.
        | "InvalidSecurityGroup"
        | "InvalidSubnet"
        | "InvalidConfigurationRequest"
        | NOT_YET => Class::NotYet,
        "InvalidSubnet.Conflict"
        | "InvalidGroup.Duplicate"
        | "InvalidPermission.Duplicate"
        | "RouteAlreadyExists"
        | "DuplicateLoadBalancerName"
        | "DuplicateAccessPointName"
        | "DuplicateTargetGroupName"
        | "DuplicateListener"
        | "ResourceExistsException"
        | "IdempotentParameterMismatch" => Class::Duplicate,
        TAKEN => Class::Taken,
        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "SignatureDoesNotMatch"
        | "InvalidSignatureException"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "OptInRequired"
        | "PendingVerification"
        | "Blocked"
        | "MissingAuthenticationToken"
        | "OperationNotPermitted" => Class::Denied,
        "VcpuLimitExceeded"
        | "TooManyLoadBalancers"
        | "TooManyTargetGroups"
        | "TooManyAccessPoints"
        | "MaxSpotInstanceCountExceeded"
        | "LimitExceededException" => Class::Quota,
        "InternalError"
        | "InternalFailure"
        | "InternalServiceError"
        | "InternalServiceErrorException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException"
        | "Unavailable"
        | "ServerInternal"
        | "RequestTimeout"
        | "RequestTimeoutException" => Class::Server,
        "InvalidAMIID.NotFound"
        | "InvalidKeyPair.NotFound"
        | "InvalidSnapshot.NotFound"
        | "NoSuchEntity"
        | "Unsupported"
        | "UnsupportedOperation"
        | "UnknownParameter"
        | "ValidationError"
        | "ValidationException"
        | "TagLimitExceeded"
        | "InsufficientFreeAddressesInSubnet" => Class::Invalid,
        _ if code.starts_with("Insufficient") && code.contains("Capacity") => Class::Capacity,
        _ if is_gone(code) => Class::NotYet,
        _ if code.ends_with("LimitExceeded") || code.ends_with("QuotaExceeded") => Class::Quota,
        _ if ["Invalid", "Malformed", "Missing"].iter().any(|it| code.starts_with(it)) => Class::Invalid,
        _ => Class::Other,
    }
}
