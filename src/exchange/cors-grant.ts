/** What a page of another origin is granted with a response; made once per policy and origin, not per request. */
export interface CorsGrant {
  /** Access-Control-Allow-Origin: `*` or the origin; '' where nothing is granted, which may still vary by origin. */
  readonly origin: string
  readonly credentials: boolean
  /** Access-Control-Expose-Headers, '' for none. */
  readonly exposes: string
  /** All of it and Vary as whole lines, for a response that says nothing of CORS itself. */
  readonly lines: string
  /** Its bytes: a copy of so few costs a third of writing them from a string. */
  readonly bytes: Uint8Array
  /** `Vary: Origin` with its CRLF, or '': for one that does. */
  readonly vary: string
}
