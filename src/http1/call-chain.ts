/**
 * Calls of sequences that come back to the gateway. The entry of the gateway in the Via of a call has a comment
 * (RFC 9110 7.6.3): how many calls the request is nested in, and how many workers wait for its response.
 */
export interface CallChain {
  /** Calls in each other, those that nobody waits for too. */
  readonly depth: number
  /** Permits for messages without TLS, and on TLS, whose tasks wait for the response. */
  readonly plain: number
  readonly secured: number
}

/** Calls of a message that no call has brought, from a client without TLS. */
export const FIRST_CALL: CallChain = { depth: 1, plain: 1, secured: 0 }

const ENTRY = /^[\d./a-z]+[\t ]+([\w-]+)[\t ]+\(calls (\d{1,3}) (\d{1,3}) (\d{1,3})\)$/

/** The innermost call in a list of Via; null: no call of this node has brought the request. */
export function callChainOf(list: string, pseudonym: string): CallChain | null {
  const name = pseudonym.toLowerCase()
  let found: CallChain | null = null
  for (const entry of list.toLowerCase().split(',')) {
    const [, recipient, depth, plain, secured] = ENTRY.exec(entry.trim()) ?? []
    if (recipient !== name || Number(depth) < (found?.depth ?? 0)) continue
    found = { depth: Number(depth), plain: Number(plain), secured: Number(secured) }
  }
  return found
}

/** The calls of a task for a message that `chain` has brought. */
export function nextCall(chain: CallChain | null, isSecured: boolean): CallChain {
  const { depth, plain, secured } = chain ?? { depth: 0, plain: 0, secured: 0 }
  return { depth: depth + 1, plain: plain + (isSecured ? 0 : 1), secured: secured + (isSecured ? 1 : 0) }
}

type Fields = readonly (readonly [name: string, value: string])[]

/** The fields of a call, with one entry of Via for the message that makes it. */
export function withCallVia(fields: Fields, pseudonym: string, { depth, plain, secured }: CallChain): Fields {
  const own = new RegExp(`^1\\.[01] ${pseudonym}$`)
  const at = fields.findLastIndex(([name, value]) => name.toLowerCase() === 'via' && own.test(value))
  const via = ['Via', `1.1 ${pseudonym} (calls ${depth} ${plain} ${secured})`] as const
  return at === -1 ? [...fields, via] : fields.with(at, via)
}
