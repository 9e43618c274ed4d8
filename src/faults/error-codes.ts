/**
 * The error codes that clients see, one row each: those of the specification and the gateway's own. Transport codes are
 * base + state; their rows stand under the base. `protocol/failure-table.ts` adds the state when the fault is sent, and
 * no code parses a sum. D4 explains the statuses of transport codes.
 */

/** Fault sequences by file name, without `.xml` (specification, "Default fault sequences"). */
export type FaultSequence =
  | 'fault'
  | 'main'
  | '_auth_failure_handler_'
  | '_production_key_error_'
  | '_sandbox_key_error_'
  | '_throttle_out_handler_'
  | '_token_fault_'
  | '_resource_mismatch_handler_'
  | '_threat_fault_'
  | 'guardrail_fault'

interface FaultRow {
  readonly status: number
  readonly message: string
  readonly description: string
  readonly sequence: FaultSequence
  /** File of `src` that raises the code; '' while none does. */
  readonly raisedIn: string
  /** Feature that will raise the code, not built yet; '' where a file raises it. */
  readonly pendingFeature: string
}

const BACKEND = { sequence: 'fault', raisedIn: 'src/protocol/failure-table.ts', pendingFeature: '' } as const
const CLIENT = { sequence: 'fault', raisedIn: 'src/proxy/source/source-connection.ts', pendingFeature: '' } as const
const RESOURCE = {
  sequence: '_resource_mismatch_handler_',
  raisedIn: 'src/filters/resources.ts',
  pendingFeature: '',
} as const
const GRAPHQL = { sequence: 'fault', raisedIn: 'src/mediation/graphql/check-query.ts', pendingFeature: '' } as const
const QUERY_LIMIT = { ...GRAPHQL, raisedIn: 'src/reactor/operation-admission.ts' } as const
const THROTTLE = { sequence: '_throttle_out_handler_', raisedIn: 'src/throttle/limit.ts', pendingFeature: '' } as const
const TOKENS = {
  sequence: '_auth_failure_handler_',
  raisedIn: 'src/auth/authentication-filter.ts',
  pendingFeature: '',
} as const
const SUBSCRIPTION = { ...TOKENS, raisedIn: 'src/auth/subscription-index.ts' } as const
const GRANT = { ...TOKENS, raisedIn: 'src/auth/grants.ts' } as const
const PAYLOAD = {
  sequence: 'fault',
  raisedIn: 'src/mediation/formats/format-error.ts',
  pendingFeature: '',
} as const
const MEDIATED = {
  sequence: 'fault',
  raisedIn: 'src/proxy/mediated/mediation-refusals.ts',
  pendingFeature: '',
} as const
const CONTRACT = {
  sequence: 'fault',
  raisedIn: 'src/mediation/openapi/validate-contract.ts',
  pendingFeature: '',
} as const
const CALLS = { sequence: 'fault', raisedIn: 'src/proxy/mediated/backend-call.ts', pendingFeature: '' } as const

const CODE = { sequence: 'fault', raisedIn: 'src/worker/thread-code.ts', pendingFeature: '' } as const

const HANDLER = { sequence: 'fault', raisedIn: 'src/filters/handlers.ts', pendingFeature: '' } as const

const SENDER = 'Error in Sender'
const QUOTA = 'You have exceeded your quota'
const SUSPENDED = 'is suspended or switched off'

export const FAULT = {
  400: {
    status: 400,
    message: 'Bad Request',
    description: 'The request is malformed',
    ...CLIENT,
  },
  404: {
    status: 404,
    message: 'Not Found',
    description: 'The requested resource is not available',
    sequence: 'main',
    raisedIn: 'src/proxy/pipeline.ts',
    pendingFeature: '',
  },
  405: {
    status: 405,
    message: 'Method not allowed',
    description: 'Method not allowed for given API resource',
    ...RESOURCE,
  },
  408: {
    status: 408,
    message: 'Request Timeout',
    description: 'The request was not received in time',
    ...CLIENT,
  },
  500: {
    status: 500,
    message: 'Internal Server Error',
    description: 'The gateway failed to process the request',
    sequence: 'fault',
    raisedIn: 'src/proxy/pipeline.ts',
    pendingFeature: '',
  },
  700700: {
    status: 503,
    message: 'API blocked',
    description: 'This API has been blocked temporarily',
    sequence: 'fault',
    raisedIn: 'src/filters/lifecycle.ts',
    pendingFeature: '',
  },
  900422: { status: 422, message: 'Invalid GraphQL query', description: 'The query is not valid', ...GRAPHQL },
  // The specification lists neither of these; both codes are those of the reference platform.
  900820: { status: 400, message: 'Query too deep', description: 'The query is nested too deeply', ...QUERY_LIMIT },
  900821: { status: 400, message: 'Query too complex', description: 'The query is too complex', ...QUERY_LIMIT },
  // The specification lists no status. "Temporary" in its message means 503 (RFC 9110 15.6.4).
  900424: {
    status: 503,
    message: 'Temporary server error',
    description: 'The gateway has no credentials that the backend accepts',
    sequence: 'fault',
    raisedIn: 'src/protocol/failure-table.ts',
    pendingFeature: '',
  },
  900800: { status: 429, message: 'Message throttled out', description: QUOTA, ...THROTTLE },
  900801: { status: 503, message: 'Hard limit exceeded', description: 'API not accepting requests', ...THROTTLE },
  900802: { status: 429, message: 'Resource level throttle out', description: QUOTA, ...THROTTLE },
  900803: { status: 429, message: 'Application level throttle out', description: QUOTA, ...THROTTLE },
  900804: { status: 429, message: 'Subscription level throttled out', description: QUOTA, ...THROTTLE },
  900805: {
    status: 429,
    message: 'Message blocked',
    description: 'You have been blocked from accessing the resource',
    ...THROTTLE,
    raisedIn: 'src/throttle/throttle.ts',
  },
  900806: { status: 429, message: 'Custom policy throttled out', description: QUOTA, ...THROTTLE },
  900807: { status: 429, message: 'Message throttled out', description: QUOTA, ...THROTTLE },
  // The specification lists neither code nor status; both are those of the reference platform.
  900514: {
    status: 446,
    message: 'Guardrail intervened',
    description: 'A guardrail of the API has refused the message',
    sequence: 'guardrail_fault',
    raisedIn: 'src/mediation/policies/guardrails.ts',
    pendingFeature: '',
  },
  900900: {
    status: 500,
    message: 'Unclassified authentication failure',
    description: 'Unclassified Authentication Failure',
    ...TOKENS,
    raisedIn: 'src/auth/token-grants.ts',
  },
  900901: {
    status: 401,
    message: 'Invalid credentials',
    description: 'Make sure you have provided the correct security credentials',
    ...TOKENS,
    raisedIn: 'src/auth/bearer.ts',
  },
  900902: {
    status: 401,
    message: 'Missing credentials',
    description: 'Make sure your request has an Authorization header of the form "Bearer ACCESS_TOKEN"',
    ...TOKENS,
  },
  900905: {
    status: 401,
    message: 'Incorrect access token type',
    description: 'Incorrect Access Token Type is provided',
    ...GRANT,
  },
  900906: {
    status: 403,
    message: 'No matching resource found',
    description: 'No matching resource found in the API for the given request',
    ...RESOURCE,
  },
  900907: {
    status: 401,
    message: 'Requested API temporarily blocked',
    description: 'The requested API is temporarily blocked',
    ...SUBSCRIPTION,
  },
  900908: {
    status: 403,
    message: 'Resource forbidden',
    description: 'User is NOT authorized to access the Resource. API Subscription validation failed.',
    ...SUBSCRIPTION,
  },
  900909: {
    status: 401,
    message: 'Subscription inactive',
    description: 'The subscription to the API is inactive',
    ...SUBSCRIPTION,
  },
  900910: {
    status: 403,
    message: 'Token does not allow access to the resource',
    description: 'User is NOT authorized to access the Resource. Scope validation failed.',
    ...GRANT,
  },
  900911: {
    status: 401,
    message: 'Internal Server Error',
    description: 'The credentials could not be validated',
    ...TOKENS,
    raisedIn: 'src/auth/custom-validator.ts',
  },
  900912: {
    status: 403,
    message: 'Claim mismatch',
    description: 'The claim of the token has not the value that the API asks for',
    ...TOKENS,
    raisedIn: 'src/mediation/policies/access-claim.ts',
  },
  900913: {
    status: 403,
    message: 'Claim invalid',
    description: 'The token has no claim that the API asks for',
    ...TOKENS,
    raisedIn: 'src/mediation/policies/access-claim.ts',
  },
  101000: { status: 500, message: SENDER, description: 'The response could not be sent', ...BACKEND },
  101001: { status: 400, message: SENDER, description: 'The request could not be received', ...BACKEND },
  101500: { status: 502, message: SENDER, description: 'The request could not be sent to the backend', ...BACKEND },
  101501: {
    status: 502,
    message: SENDER,
    description: 'The response could not be received from the backend',
    ...BACKEND,
  },
  101503: {
    status: 502,
    message: 'Error connecting to the backend',
    description: 'Connecting to the backend failed',
    ...BACKEND,
  },
  101504: { status: 504, message: 'Send timeout', description: 'The backend did not answer in time', ...BACKEND },
  101505: { status: 502, message: SENDER, description: 'The backend closed the connection', ...BACKEND },
  101506: { status: 502, message: SENDER, description: 'The backend violated the protocol', ...BACKEND },
  101507: { status: 502, message: SENDER, description: 'Connecting to the backend was cancelled', ...BACKEND },
  101508: {
    status: 504,
    message: 'Error connecting to the backend',
    description: 'Connecting to the backend took too long',
    ...BACKEND,
  },
  101509: { status: 502, message: SENDER, description: 'Sending to the backend was aborted', ...BACKEND },
  101510: { status: 502, message: SENDER, description: 'The response could not be processed', ...BACKEND },
  101600: {
    status: 503,
    message: 'Connection limit reached',
    description: 'Every allowed connection to the backend is in use',
    ...BACKEND,
    raisedIn: 'src/proxy/target/connection-pool.ts',
  },
  101601: {
    status: 503,
    message: 'Out of memory',
    description: 'The gateway has no memory for the request',
    ...BACKEND,
    raisedIn: 'src/proxy/target/request-sender.ts',
  },
  102511: {
    status: 400,
    message: 'Incomplete payload',
    description: 'The payload is too large or was not delivered whole',
    ...CLIENT,
  },
  // RFC 5842 7.2.
  102512: {
    status: 508,
    message: 'Loop detected',
    description: 'The request has come back to the gateway too often',
    ...CLIENT,
  },
  102520: {
    status: 400,
    message: 'Malformed payload',
    description: 'The payload does not have the form that its content type names',
    ...PAYLOAD,
  },
  102521: {
    status: 413,
    message: 'Payload exceeds a limit',
    description: 'The payload is too deep, has too many items, or is too long',
    ...PAYLOAD,
  },
  102522: {
    status: 415,
    message: 'Unsupported payload',
    description: 'The content coding or charset of the payload is not supported',
    ...PAYLOAD,
  },
  102530: {
    status: 413,
    message: 'Request body too large',
    description: 'The body of the request is longer than a sequence may read',
    ...MEDIATED,
  },
  102531: {
    status: 502,
    message: 'Response body too large',
    description: 'The body of the response is longer than a sequence may read',
    ...MEDIATED,
  },
  102532: {
    status: 500,
    message: 'Mediation failed',
    description: 'A sequence has made a message that cannot be sent',
    ...MEDIATED,
  },
  102533: {
    status: 503,
    message: 'Mediation failed',
    description: 'The gateway cannot keep a body of this length',
    ...MEDIATED,
  },
  102540: {
    status: 503,
    message: 'Mediation queue full',
    description: 'The gateway mediates as many messages as it is configured to',
    ...MEDIATED,
  },
  102541: {
    status: 503,
    message: 'Mediation queue full',
    description: 'The messages that wait for mediation have too many bytes',
    ...MEDIATED,
  },
  102542: {
    status: 504,
    message: 'Mediation timeout',
    description: 'The mediation of the message took too long',
    ...MEDIATED,
  },
  102543: {
    status: 500,
    message: 'Mediation failed',
    description: 'The mediation of the message ended before its result',
    ...MEDIATED,
  },
  102544: {
    status: 500,
    message: 'Mediation failed',
    description: 'The message could not be mediated',
    ...MEDIATED,
  },
  102545: {
    status: 500,
    message: 'Mediation limit reached',
    description: 'The message has entered more sequences, or run more mediators, than one message may',
    ...MEDIATED,
    raisedIn: 'src/mediation/compiled-sequences.ts',
  },
  102550: {
    status: 502,
    message: 'Response body too large',
    description: 'The response to a call of a sequence is longer than a sequence may read',
    ...CALLS,
  },
  102551: {
    status: 500,
    message: 'Invalid destination',
    description: 'A sequence has made a request that cannot be sent',
    ...CALLS,
  },
  102552: {
    status: 503,
    message: 'Too many calls',
    description: 'The sequences make as many requests as the gateway allows',
    ...CALLS,
    raisedIn: 'src/proxy/mediated/task-calls-server.ts',
  },
  102553: {
    status: 500,
    message: 'Too many copies',
    description: 'A sequence has split a message into more parts than the gateway allows',
    ...CALLS,
    raisedIn: 'src/worker/flow-runner.ts',
  },
  102554: {
    status: 504,
    message: 'Incomplete aggregation',
    description: 'A sequence has not got the responses that it needs',
    ...CALLS,
    raisedIn: 'src/mediation/copies.ts',
  },
  102555: {
    status: 403,
    message: 'Forbidden',
    description: 'The policy server refuses the request',
    ...CALLS,
    raisedIn: 'src/mediation/mediators/opa.ts',
  },
  102556: {
    status: 500,
    message: 'No policy decision',
    description: 'The policy server has not decided',
    ...CALLS,
    raisedIn: 'src/mediation/mediators/opa.ts',
  },
  102560: {
    status: 400,
    message: 'Invalid request',
    description: 'The request does not follow the OpenAPI document of the API',
    ...CONTRACT,
  },
  102561: {
    status: 500,
    message: 'Invalid response',
    description: 'The response of the backend does not follow the OpenAPI document of the API',
    ...CONTRACT,
  },
  102570: {
    status: 500,
    message: 'API failed',
    description: 'The implementation of the API has failed',
    ...MEDIATED,
  },
  102571: {
    status: 500,
    message: 'API failed',
    description: 'The implementation of the API has made a response that cannot be sent',
    ...MEDIATED,
  },
  102572: {
    status: 504,
    message: 'API timeout',
    description: 'The implementation of the API did not answer in time',
    ...MEDIATED,
  },
  102573: {
    status: 413,
    message: 'Request body too large',
    description: 'The body of the request is longer than the API reads',
    ...MEDIATED,
  },
  102574: {
    status: 503,
    message: 'API not ready',
    description: 'The implementation of the API could not be opened',
    ...MEDIATED,
  },
  102580: {
    status: 500,
    message: 'Script failed',
    description: 'The message could not be mediated',
    ...CODE,
  },
  102581: {
    status: 504,
    message: 'Script timeout',
    description: 'The message could not be mediated in time',
    ...CODE,
  },
  102582: {
    status: 500,
    message: 'Script out of memory',
    description: 'The message could not be mediated',
    ...CODE,
  },
  102583: {
    status: 503,
    message: 'Too many scripts',
    description: 'The gateway runs as many scripts as it allows',
    ...CODE,
  },
  102584: {
    status: 400,
    message: 'Invalid payload',
    description: 'The payload does not match its schema',
    ...CODE,
    raisedIn: 'src/mediation/mediators/validate.ts',
  },
  102590: { status: 500, message: 'Handler failed', description: 'A handler of the gateway has failed', ...HANDLER },
  102591: {
    status: 504,
    message: 'Handler timeout',
    description: 'A handler of the gateway has not answered in time',
    ...HANDLER,
  },
  102592: {
    status: 503,
    message: 'Too many handlers',
    description: 'The gateway runs as many handlers as it allows',
    ...HANDLER,
  },
  102593: {
    status: 403,
    message: 'Forbidden',
    description: 'A handler of the gateway refuses the request',
    ...HANDLER,
  },
  303000: {
    status: 503,
    message: 'No endpoint is ready',
    description: `Every endpoint of the API ${SUSPENDED}`,
    ...BACKEND,
    raisedIn: 'src/proxy/target/endpoint-group.ts',
  },
  303001: {
    status: 503,
    message: 'Endpoint suspended',
    description: `The endpoint ${SUSPENDED}`,
    ...BACKEND,
    raisedIn: 'src/proxy/target/endpoint.ts',
  },
} as const satisfies Record<number, FaultRow>

export type FaultCode = keyof typeof FAULT

/** The API has endpoints for the other type of key only. Shares its code with invalid credentials. */
export const NO_ENDPOINT_FOR_KEY_TYPE = {
  code: 900901,
  status: 401,
  description: 'The API has no endpoint for keys of this type',
} as const

/** Fault sequence by the type of key that has no endpoint. */
export const NO_ENDPOINT_SEQUENCES = {
  PRODUCTION: '_production_key_error_',
  SANDBOX: '_sandbox_key_error_',
} as const satisfies Record<string, FaultSequence>

/** A handshake sequence refuses the WebSocket connection. Shares its code with a missing subscription. */
export const WEBSOCKET_REFUSED = {
  code: 900908,
  status: 403,
  description: 'The WebSocket connection is not allowed',
} as const

/** Further situations that use the code of a row, each with its own status and description. */
export const SHARED_CODES: readonly {
  readonly code: FaultCode
  readonly status: number
  readonly description: string
  readonly sequences: readonly FaultSequence[]
  readonly raisedIn: string
}[] = [
  { ...NO_ENDPOINT_FOR_KEY_TYPE, sequences: Object.values(NO_ENDPOINT_SEQUENCES), raisedIn: 'src/proxy/pipeline.ts' },
  {
    ...WEBSOCKET_REFUSED,
    sequences: [FAULT[WEBSOCKET_REFUSED.code].sequence],
    raisedIn: 'src/proxy/websocket-mediation.ts',
  },
  {
    code: 400,
    status: 400,
    description: 'A threat protection policy of the API has refused the request',
    sequences: ['_threat_fault_'],
    raisedIn: 'src/mediation/policies/threat-protection.ts',
  },
]

/** Codes of the specification that no response carries any more: the code sent instead, and the reason. */
export const REPLACED_CODES: Readonly<Record<number, { readonly by: FaultCode; readonly because: string }>> = {
  403: { by: 900906, because: 'sequence-level code; responses carry the code of the resource' },
  900904: { by: 900901, because: 'deprecated' },
}
