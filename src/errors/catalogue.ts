/**
 * Every code that a client can see, one row each. Transport codes that are base + state have their rows by base; the
 * sum is made in `transport-code.ts`, on the way out, and never parsed back. Status of the transport rows: D4.
 */

interface FaultRow {
  readonly status: number
  readonly message: string
  readonly description: string
}

export const FAULT = {
  400: { status: 400, message: 'Bad Request', description: 'The request is malformed' },
  404: { status: 404, message: 'Not Found', description: 'The requested resource is not available' },
  405: { status: 405, message: 'Method not allowed', description: 'Method not allowed for given API resource' },
  408: { status: 408, message: 'Request Timeout', description: 'The request was not received in time' },
  500: { status: 500, message: 'Internal Server Error', description: 'The gateway failed to process the request' },
  900901: { status: 403, message: 'Invalid Credentials', description: 'The API has no endpoint for keys of this type' },
  101000: { status: 500, message: 'Error in Sender', description: 'The response could not be sent' },
  101001: { status: 400, message: 'Error in Sender', description: 'The request could not be received' },
  101500: { status: 502, message: 'Error in Sender', description: 'The request could not be sent to the back end' },
  101501: {
    status: 502,
    message: 'Error in Sender',
    description: 'The response could not be received from the back end',
  },
  101503: {
    status: 502,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end failed',
  },
  101504: { status: 504, message: 'Send timeout', description: 'The back end did not answer in time' },
  101505: { status: 502, message: 'Error in Sender', description: 'The back end closed the connection' },
  101506: { status: 502, message: 'Error in Sender', description: 'The back end violated the protocol' },
  101507: { status: 502, message: 'Error in Sender', description: 'Connecting to the back end was cancelled' },
  101508: {
    status: 504,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end took too long',
  },
  101509: { status: 502, message: 'Error in Sender', description: 'Sending to the back end was aborted' },
  101510: { status: 502, message: 'Error in Sender', description: 'The response could not be processed' },
  102511: {
    status: 400,
    message: 'Incomplete payload',
    description: 'The payload is too large or was not delivered whole',
  },
  303000: {
    status: 503,
    message: 'No endpoint is ready',
    description: 'Every endpoint of the API is suspended or switched off',
  },
  303001: { status: 503, message: 'Endpoint suspended', description: 'The endpoint is suspended or switched off' },
} as const satisfies Record<number, FaultRow>

export type FaultCode = keyof typeof FAULT
