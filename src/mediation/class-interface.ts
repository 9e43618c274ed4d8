/**
 * Interface of the ES modules that `<class>` and policies of API projects run: a module exports `mediate`. It runs on
 * the worker thread of its message.
 */

/** The message, as a module sees it. What a getter returns is a copy. */
export interface ClassMessage {
  readonly method: string
  /** Path and query behind the context of the API. */
  readonly target: string
  /** 0 for a request. */
  readonly status: number
  /** Scopes: default, axis2, transport, operation, variable. Undefined for none. */
  getProperty(name: string, scope?: string): unknown
  /** A text, number, boolean, or a value of JSON. */
  setProperty(name: string, value: unknown, scope?: string): void
  removeProperty(name: string, scope?: string): void
  /** Value of a header field, in any case; undefined for none. */
  getField(name: string): string | undefined
  /** Throws a TypeError for a name that only the gateway sets. */
  setField(name: string, value: string): void
  removeField(name: string): void
  /** Value of a JSON payload; undefined for other payloads. */
  json: unknown
  /** The payload as text: JSON, XML, text; '' without one. Setting it makes a payload of the media type text/plain. */
  text: string
  /** The payload as bytes. Setting it makes a payload of the media type application/octet-stream. */
  bytes: Uint8Array
  /** Replaces the payload with a text of that media type. Throws where the text is none. */
  setPayload(text: string, contentType: string): void
}

export interface ClassContext {
  /** The `<property>` children of the mediator. */
  readonly properties: Readonly<Record<string, unknown>>
  readonly api: string
  readonly flow: 'request' | 'response' | 'fault'
  log(level: 'debug' | 'info' | 'warn' | 'error', text: string): void
}

/** Function `mediate` of the module. False ends the sequence; what it throws raises a fault. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` must have this type
export type Mediate = (message: ClassMessage, context: ClassContext) => boolean | void | Promise<boolean | void>
