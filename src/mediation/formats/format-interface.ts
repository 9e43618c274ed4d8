/**
 * Interface of the ES modules that `[message_builders]`, `[message_formatters]` and their custom rows name: a module
 * exports `build`, `format` or both. They run on worker threads and return no promises.
 */

/** The payload that such a module makes and gets: exactly one of the members. */
export type CustomPayload =
  /** A value that JSON.stringify writes. */
  | { readonly json: unknown }
  /** An XML document without a document type. */
  | { readonly xml: string }
  | { readonly text: string }
  | { readonly bytes: Uint8Array }

/** `bytes`: the body without content coding. Throws where it is malformed. */
export type BuildFunction = (bytes: Uint8Array, contentType: string) => CustomPayload
/** Bytes, or text that is sent as UTF-8. */
export type FormatFunction = (payload: CustomPayload, contentType: string) => Uint8Array | string
