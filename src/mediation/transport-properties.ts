/** Properties by which sequences of the reference platform steer its transport and its mediation. */

/** Properties that act on whole messages: they decide about the body or the status, or ask for a length. */
export const OF_WHOLE_MESSAGES: readonly string[] = [
  ...['messageType', 'NO_ENTITY_BODY', 'DISABLE_CHUNKING', 'FORCE_HTTP_CONTENT_LENGTH', 'FAULTS_AS_HTTP_200'],
  ...['FORCE_POST_PUT_NOBODY', 'FORCE_SC_ACCEPTED'],
]

/** Of the scope axis2: the client gets 202 once the request flow has ended, whatever that has made. */
export const FORCE_SC_ACCEPTED = 'FORCE_SC_ACCEPTED'
/** Of the scope default: as FORCE_SC_ACCEPTED for a request that goes on to a backend. */
const OUT_ONLY = 'OUT_ONLY'
/** Of the scope default: a SOAP Fault of a backend is a fault of the message. */
export const FORCE_ERROR_ON_SOAP_FAULT = 'FORCE_ERROR_ON_SOAP_FAULT'

/** Tells whether a property sends the request while no client waits for its response. */
export function acceptsRequest(scope: string, name: string): boolean {
  return (scope === 'axis2' && name === FORCE_SC_ACCEPTED) || (scope === 'default' && name === OUT_ONLY)
}

/** The only scope in which a property has an effect. */
export const ONLY_SCOPE: Readonly<Record<string, 'axis2' | 'default'>> = {
  [FORCE_SC_ACCEPTED]: 'axis2',
  [OUT_ONLY]: 'default',
  [FORCE_ERROR_ON_SOAP_FAULT]: 'default',
  FORCE_POST_PUT_NOBODY: 'axis2',
}

/** Remedies by property: these have no effect here in the scopes axis2 and default. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  'FORCE_HTTP_1.0': 'remove it: backends get HTTP/1.1',
  NO_KEEPALIVE: 'remove it: the keys of [transport.passthru_http] limit idle connections',
  POST_TO_URI: 'remove it: a forward proxy is a key of [transport.passthru_http]',
  REQUEST_HOST_HEADER: 'set the field Host in the scope transport',
  COPY_CONTENT_LENGTH_FROM_INCOMING: 'remove it: the length of an unchanged body stays',
  HTTP_ETAG: 'set the field ETag in the scope transport',
  ClientApiNonBlocking: 'remove it: nothing blocks',
  transportNonBlocking: 'remove it: nothing blocks',
  PRESERVE_WS_ADDRESSING: 'remove it: header blocks stay',
  disableAddressingForOutMessages: 'remove it: no header blocks of WS-Addressing are added',
  preserveProcessedHeaders: 'remove it: header blocks stay',
  setCharacterEncoding: 'name the charset in messageType',
  CHARACTER_SET_ENCODING: 'name the charset in messageType',
}
