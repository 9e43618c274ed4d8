/**
 * Calls of sequences that come back to the gateway. The entry of the gateway in the Via of a call has a comment
 * (RFC 9110 7.6.3): how many calls the request is nested in, how many workers wait for its response, and a token of the
 * process, without which any client could claim that.
 */
export interface CallChain {
  /** Calls in each other, those that nobody waits for too. */
  readonly depth: number
  /** Permits for messages without TLS, and on TLS, whose tasks wait for the response. */
  readonly plain: number
  readonly secured: number
  /** True if a call of the chain began while its task waited for another one. */
  readonly isParallel?: true
}

/** Calls of a message that no call has brought, from a client without TLS. */
export const FIRST_CALL: CallChain = { depth: 1, plain: 1, secured: 0 }

const ENTRY = /^[\d./a-z]+[\t ]+([\w-]+)[\t ]+\(calls (\d{1,3}) (\d{1,3}) (\d{1,3})( parallel)? (\w+)\)$/

/** The innermost call in a list of Via; null: no call of this node has brought the request. */
export function callChainOf(list: string, pseudonym: string, token: string): CallChain | null {
  const name = pseudonym.toLowerCase()
  let found: CallChain | null = null
  for (const entry of list.toLowerCase().split(',')) {
    const [, recipient, depth, plain, secured, parallel, proof] = ENTRY.exec(entry.trim()) ?? []
    if (recipient !== name || proof !== token || Number(depth) < (found?.depth ?? 0)) continue
    const chain = { depth: Number(depth), plain: Number(plain), secured: Number(secured) }
    found = parallel === undefined ? chain : { ...chain, isParallel: true }
  }
  return found
}

/** The calls of a task for a message that `chain` has brought. */
export function nextCall(chain: CallChain | null, isSecured: boolean): CallChain {
  const { depth, plain, secured, ...kept } = chain ?? { depth: 0, plain: 0, secured: 0 }
  return { ...kept, depth: depth + 1, plain: plain + (isSecured ? 0 : 1), secured: secured + (isSecured ? 1 : 0) }
}

type Fields = readonly (readonly [name: string, value: string])[]

/** The fields of a call, with one entry of Via for the message that makes it. */
export function withCallVia(fields: Fields, pseudonym: string, token: string, calls: CallChain): Fields {
  const { depth, plain, secured, isParallel = false } = calls
  const own = new RegExp(`^1\\.[01] ${pseudonym}$`)
  const at = fields.findLastIndex(([name, value]) => name.toLowerCase() === 'via' && own.test(value))
  const comment = `calls ${depth} ${plain} ${secured}${isParallel ? ' parallel' : ''} ${token}`
  const via = ['Via', `1.1 ${pseudonym} (${comment})`] as const
  return at === -1 ? [...fields, via] : fields.with(at, via)
}
