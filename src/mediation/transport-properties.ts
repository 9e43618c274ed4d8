/** Properties by which sequences of the reference platform steer its transport and its mediation. */

/** Properties that act on whole messages: they decide about the body or the status, or ask for a length. */
export const OF_WHOLE_MESSAGES: readonly string[] = [
  ...['messageType', 'NO_ENTITY_BODY', 'DISABLE_CHUNKING', 'FORCE_HTTP_CONTENT_LENGTH', 'FAULTS_AS_HTTP_200'],
]

/** Remedies by property: these have no effect here in the scopes axis2 and default. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  'FORCE_HTTP_1.0': 'remove it: backends get HTTP/1.1',
  NO_KEEPALIVE: 'remove it: the keys of [transport.passthru_http] limit idle connections',
  POST_TO_URI: 'remove it: a forward proxy is a key of [transport.passthru_http]',
  REQUEST_HOST_HEADER: 'remove it: the Host field is that of the endpoint',
  FORCE_SC_ACCEPTED: 'answer with <respond>, and send on a copy with <clone>',
  OUT_ONLY: 'send a copy with <clone>',
  FORCE_POST_PUT_NOBODY: 'set NO_ENTITY_BODY',
  COPY_CONTENT_LENGTH_FROM_INCOMING: 'remove it: the length of an unchanged body stays',
  FORCE_ERROR_ON_SOAP_FAULT: "test get-property('FAULT') in the response flow, and raise it with <throwError>",
  HTTP_ETAG: 'set the field ETag in the scope transport',
  ClientApiNonBlocking: 'remove it: nothing blocks',
  transportNonBlocking: 'remove it: nothing blocks',
  PRESERVE_WS_ADDRESSING: 'remove it: header blocks stay',
  disableAddressingForOutMessages: 'remove it: no header blocks of WS-Addressing are added',
  preserveProcessedHeaders: 'remove it: header blocks stay',
  setCharacterEncoding: 'name the charset in messageType',
  CHARACTER_SET_ENCODING: 'name the charset in messageType',
}
