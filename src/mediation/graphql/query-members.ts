/**
 * Members of a query that another reader could take differently: readers of JSON and of parameters may ignore case, and
 * a server may look for a stored query in place of the text that was checked.
 */
import { createHash } from 'node:crypto'
import { InvalidQuery } from './query-check.ts'

export const QUERY_MEMBERS = ['query', 'operationName', 'variables', 'extensions']
/** Members of a message of a WebSocket subprotocol. */
export const MESSAGE_MEMBERS = ['type', 'id', 'payload']
/** Members that name a stored query, in several servers. */
const PERSISTED_IDS = ['id', 'documentId', 'doc_id', 'queryId']
/** Automatic persisted queries: the text comes with its hash, and later requests with the hash alone. */
const PERSISTED = 'persistedQuery'
const PERSISTED_MEMBERS = ['version', 'sha256Hash']

type Members = Readonly<Record<string, unknown>>

/** Returns whether some reader takes a parameter of a target for a part of the query. */
export function isQueryParameter(name: string): boolean {
  return [...QUERY_MEMBERS, ...PERSISTED_IDS].some(known => folded(known) === folded(name))
}

/** Throws InvalidQuery where a name differs from one of `known` by its case alone. */
export function refuseOtherCase(names: readonly string[], known: readonly string[]): void {
  const byFolded = new Map(known.map(name => [folded(name), name]))
  for (const name of names) {
    const meant = byFolded.get(folded(name))
    if (meant !== undefined && meant !== name) throw new InvalidQuery(`${meant} must not be there in another case`)
  }
}

/** Throws InvalidQuery where the members name a stored query, unless by the hash of the text itself. */
export function refuseStored(text: string, members: Members): void {
  const ids = PERSISTED_IDS.map(folded)
  const id = Object.keys(members).find(name => ids.includes(folded(name)) && members[name] !== null)
  if (id !== undefined) throw new InvalidQuery(`${id} must not be beside a query`)
  const { extensions = null } = members
  if (extensions === null) return
  if (typeof extensions !== 'object' || Array.isArray(extensions))
    throw new InvalidQuery('extensions must be an object')
  refuseOtherCase(Object.keys(extensions), [PERSISTED])
  const persisted = Object.hasOwn(extensions, PERSISTED) ? (extensions as Members)[PERSISTED] : null
  if (persisted === null) return
  const hash = createHash('sha256').update(text).digest('hex')
  const isOwn =
    typeof persisted === 'object' &&
    Object.keys(persisted!).every(name => PERSISTED_MEMBERS.includes(name)) &&
    (persisted as Members).sha256Hash === hash
  if (!isOwn) throw new InvalidQuery(`${PERSISTED} must have the SHA-256 of the query alone`)
}

/** Names that are equal for readers that ignore case: Unicode has letters whose capital is S or K of ASCII. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}
