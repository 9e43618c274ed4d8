/** What is asked again and again in a contest, where it is not the GET or the POST that the other scenarios send. */

export interface Ask {
  readonly method: string
  /** Fields beside the usual ones or in their place; null leaves one out. */
  readonly fields: Readonly<Record<string, string | null>>
  /** Asked in turn; at least one. */
  readonly paths: readonly string[]
  /** So many different bearer tokens, one after the other. */
  readonly tokens?: number
  readonly uploadBytes: number
  /** Any one of them is the right answer. */
  readonly statuses: readonly number[]
  /** Of the right answer's body; null where it is the proxy's own. */
  readonly downloadBytes: number | null
}

/** Whether the right answer is one that load generators count as an error. */
export function expectsRefusal({ statuses }: Ask): boolean {
  return statuses.every(status => status >= 400)
}
