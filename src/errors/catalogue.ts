/**
 * Every code that a client can see, one row each: those of the specification's tables, and those that a gateway has
 * beside them. Transport codes that are base + state have their rows by base; the sum is made in `transport-code.ts`,
 * on the way out, and never parsed back. Status of the transport rows: D4.
 */

/** Sequence files that word faults, as the specification names them ("Default fault sequences"). */
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
  /** File of `src` that raises it; '' while nothing does. */
  readonly raisedIn: string
  /** The capability that will raise it; '' where something does. */
  readonly awaits: string
}

const BACKEND = { sequence: 'fault', raisedIn: 'src/protocol/fate.ts', awaits: '' } as const
const CLIENT = { sequence: 'fault', raisedIn: 'src/source/source-connection.ts', awaits: '' } as const
const RESOURCE = { sequence: '_resource_mismatch_handler_', raisedIn: 'src/handlers/resources.ts', awaits: '' } as const
const GRAPHQL = { sequence: 'fault', raisedIn: '', awaits: 'GraphQL APIs' } as const
const THROTTLE = { sequence: '_throttle_out_handler_', raisedIn: '', awaits: 'throttling' } as const
const TOKENS = {
  sequence: '_auth_failure_handler_',
  raisedIn: 'src/handlers/authentication.ts',
  awaits: '',
} as const
const SUBSCRIPTION = { ...TOKENS, raisedIn: 'src/identity/subscription-index.ts' } as const
const GRANT = { ...TOKENS, raisedIn: 'src/identity/grants.ts' } as const

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
    raisedIn: 'src/walk.ts',
    awaits: '',
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
    raisedIn: 'src/walk.ts',
    awaits: '',
  },
  700700: {
    status: 503,
    message: 'API blocked',
    description: 'This API has been blocked temporarily',
    sequence: 'fault',
    raisedIn: 'src/handlers/lifecycle.ts',
    awaits: '',
  },
  900422: { status: 422, message: 'Invalid GraphQL query', description: 'The query is not valid', ...GRAPHQL },
  // The specification lists no status for it: the message says that a later try may succeed (RFC 9110 15.6.4).
  900424: {
    status: 503,
    message: 'Temporary server error',
    description: 'The gateway has no credentials that the back end accepts',
    sequence: 'fault',
    raisedIn: 'src/protocol/fate.ts',
    awaits: '',
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
  },
  900806: { status: 429, message: 'Custom policy throttled out', description: QUOTA, ...THROTTLE },
  900807: { status: 429, message: 'Message throttled out', description: QUOTA, ...THROTTLE },
  900900: {
    status: 500,
    message: 'Unclassified authentication failure',
    description: 'Unclassified Authentication Failure',
    ...TOKENS,
    raisedIn: 'src/handlers/token-grants.ts',
  },
  900901: {
    status: 401,
    message: 'Invalid credentials',
    description: 'Make sure you have provided the correct security credentials',
    ...TOKENS,
    raisedIn: 'src/handlers/bearer.ts',
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
    raisedIn: 'src/handlers/own-validation.ts',
  },
  101000: { status: 500, message: SENDER, description: 'The response could not be sent', ...BACKEND },
  101001: { status: 400, message: SENDER, description: 'The request could not be received', ...BACKEND },
  101500: { status: 502, message: SENDER, description: 'The request could not be sent to the back end', ...BACKEND },
  101501: {
    status: 502,
    message: SENDER,
    description: 'The response could not be received from the back end',
    ...BACKEND,
  },
  101503: {
    status: 502,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end failed',
    ...BACKEND,
  },
  101504: { status: 504, message: 'Send timeout', description: 'The back end did not answer in time', ...BACKEND },
  101505: { status: 502, message: SENDER, description: 'The back end closed the connection', ...BACKEND },
  101506: { status: 502, message: SENDER, description: 'The back end violated the protocol', ...BACKEND },
  101507: { status: 502, message: SENDER, description: 'Connecting to the back end was cancelled', ...BACKEND },
  101508: {
    status: 504,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end took too long',
    ...BACKEND,
  },
  101509: { status: 502, message: SENDER, description: 'Sending to the back end was aborted', ...BACKEND },
  101510: { status: 502, message: SENDER, description: 'The response could not be processed', ...BACKEND },
  102511: {
    status: 400,
    message: 'Incomplete payload',
    description: 'The payload is too large or was not delivered whole',
    ...CLIENT,
  },
  303000: {
    status: 503,
    message: 'No endpoint is ready',
    description: `Every endpoint of the API ${SUSPENDED}`,
    ...BACKEND,
    raisedIn: 'src/target/endpoint-group.ts',
  },
  303001: {
    status: 503,
    message: 'Endpoint suspended',
    description: `The endpoint ${SUSPENDED}`,
    ...BACKEND,
    raisedIn: 'src/target/endpoint.ts',
  },
} as const satisfies Record<number, FaultRow>

export type FaultCode = keyof typeof FAULT

/** A key of one type, and an API with endpoints for the other alone: the code is that of keys that are invalid. */
export const NO_ENDPOINT_OF_KIND = {
  code: 900901,
  status: 403,
  description: 'The API has no endpoint for keys of this type',
} as const

/** By what the key is for. */
export const NO_ENDPOINT_SEQUENCES = {
  PRODUCTION: '_production_key_error_',
  SANDBOX: '_sandbox_key_error_',
} as const satisfies Record<string, FaultSequence>

/** A sequence lets no WebSocket through, in either direction: the code is that of what nobody was granted. */
export const SOCKET_REFUSED = {
  code: 900908,
  status: 403,
  description: 'The WebSocket connection is not allowed',
} as const

/** What answers a code beside its row: the code says less than the description. */
export const OTHER_MEANINGS: readonly {
  readonly code: FaultCode
  readonly status: number
  readonly description: string
  readonly sequences: readonly FaultSequence[]
  readonly raisedIn: string
}[] = [
  { ...NO_ENDPOINT_OF_KIND, sequences: Object.values(NO_ENDPOINT_SEQUENCES), raisedIn: 'src/walk.ts' },
  { ...SOCKET_REFUSED, sequences: [FAULT[SOCKET_REFUSED.code].sequence], raisedIn: 'src/reactor/handshakes.ts' },
]

/** Codes that the specification has, and answers no longer: what stands in their place, and why. */
export const REPLACED: Readonly<Record<number, { readonly by: FaultCode; readonly because: string }>> = {
  403: { by: 900906, because: 'the code of the sequence level; answers carry that of the resource' },
  900904: { by: 900901, because: 'deprecated' },
}
