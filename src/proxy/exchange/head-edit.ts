/**
 * The changes of mediation in the head of a message, applied while the head is composed. An edit is never changed, so
 * one edit of an API serves all its requests. The composed head holds nothing that could end a line (RFC 9110 5.5).
 */
import { KIND } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { FieldNames } from '../../http1/rewrite.ts'
import { isToken } from '../../http1/token.ts'
import { isFieldText } from '../../http1/writer.ts'

/** Most bytes that an edit adds to a head: buffers have this room behind the longest head. */
export const EDIT_BYTES_MAX = 8192

/** A field, in any case. */
export interface FieldChange {
  readonly name: string
  /** Replaces all fields of the name; undefined: removes them. */
  readonly value: string | undefined
}

/** Changes beside those of fields; a part that is left out stays. */
interface LineChanges {
  /** Method of requests. */
  readonly method?: string
  /** Path and query behind the base path of the endpoint, of requests. */
  readonly target?: string
  /** `target` as traces show it, without secrets; left out: `target` itself. */
  readonly shownTarget?: string
  /** Host of requests: the backend gets it whether or not that of clients is preserved. */
  readonly host?: string
  /** Status of responses. */
  readonly status?: number
  readonly reason?: string
}

const VISIBLE = /^[\x21-\x7e\x80-\xff]*$/
const AUTHORIZATION = 'authorization'
const CORS = 'access-control-'
/** No other forwarding field has a name of this length. */
const VIA = 'via'

/** True if the gateway itself says with fields of the name, in lower case, where a request comes from. */
export function isForwarding(name: string): boolean {
  return name === VIA || name === 'forwarded' || name.startsWith('x-forwarded-')
}

export class HeadEdit {
  /** Names whose fields of the peer are left out: removed ones and replaced ones. */
  readonly removed: FieldNames
  /** Lines that are added, each with its CRLF. */
  readonly lines: Uint8Array
  /** `lines` without Authorization, for a request that has the gateway's own credentials. */
  readonly linesBesideOwn: Uint8Array
  /** The gateway's own lines about the way of the request have names among `removed`. */
  readonly editsForwarding: boolean
  readonly editsUserAgent: boolean
  /** The response gets CORS fields of the edit. */
  readonly setsCors: boolean
  /** '': that of the request. */
  readonly method: string
  /** Null: that of the request. */
  readonly target: string | null
  /** `target` for traces. */
  readonly shownTarget: string | null
  /** '': that of the endpoint, or of the request. */
  readonly host: string
  /** 0: that of the response. */
  readonly status: number
  readonly reason: string

  /**
   * Throws where a part holds what a head cannot hold there, or where all of them have more than EDIT_BYTES_MAX bytes;
   * callers check what sequences give. The last change of a name counts.
   */
  constructor(
    fields: readonly FieldChange[],
    { method = '', target, shownTarget = target, host = '', status = 0, reason = '' }: LineChanges,
  ) {
    const changes = new Map(fields.map(change => [change.name.toLowerCase(), change]))
    const isValid = fields.every(({ name, value = '' }) => isToken(name) && isFieldText(value))
    if (!isValid || !VISIBLE.test(`${method}${target ?? ''}${host}`) || !isFieldText(reason)) {
      throw new Error('an edit holds what a head cannot hold')
    }
    const names = [...changes.keys()]
    let lines = ''
    let linesBesideOwn = ''
    for (const [lower, { name, value }] of changes) {
      if (value === undefined) continue
      const line = `${name}: ${value}\r\n`
      lines += line
      if (lower !== AUTHORIZATION) linesBesideOwn += line
    }
    this.removed = new FieldNames(names)
    this.lines = Buffer.from(lines, 'latin1')
    this.linesBesideOwn = changes.has(AUTHORIZATION) ? Buffer.from(linesBesideOwn, 'latin1') : this.lines
    this.editsForwarding = names.some(isForwarding)
    this.editsUserAgent = changes.has('user-agent')
    this.setsCors = names.some(name => name.startsWith(CORS) && changes.get(name)!.value !== undefined)
    this.method = method
    this.target = target ?? null
    this.shownTarget = shownTarget ?? null
    this.host = host
    this.status = status
    this.reason = reason
    const added = this.lines.length + method.length + (target ?? '').length + host.length + reason.length
    if (added > EDIT_BYTES_MAX) throw new Error(`an edit adds more than ${EDIT_BYTES_MAX} bytes`)
  }

  /** This edit, and further changes behind its own. Throws as the constructor does. */
  extended(changes: readonly FieldChange[], further: Pick<LineChanges, 'target' | 'shownTarget'> = {}): HeadEdit {
    const { method, target, shownTarget, host, status, reason } = this
    const removed = this.removed.names.map(name => ({ name, value: undefined }))
    const set = fieldsIn(this.lines).map(([name, value]) => ({ name, value }))
    const targets = target === null || shownTarget === null ? {} : { target, shownTarget }
    const start = { method, host, status, reason, ...targets, ...further }
    return new HeadEdit([...removed, ...set, ...changes], start)
  }
}

/** The fields of a block of lines, each with its CRLF, in order. */
export function fieldsIn(lines: Uint8Array | string): readonly (readonly [name: string, value: string])[] {
  const text = typeof lines === 'string' ? lines : Buffer.from(lines).toString('latin1')
  return text
    .split('\r\n')
    .slice(0, -1)
    .map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
}

/** Keeps trailers of names that an edit removes or replaces from passing: a recipient may merge them into the head. */
export function stripTrailers(bytes: Uint8Array, trailers: Head, { removed }: HeadEdit): void {
  for (let field = 0; field < trailers.count; field++) {
    const isEdited = removed.include(bytes, trailers.nameAt(field), trailers.nameLength(field))
    if (isEdited) trailers.kinds[field] = KIND.HOP_BY_HOP
  }
}

/** Writes the lines of a block, each with its CRLF, whose names an edit does not have. */
export function putLinesExcept(bytes: Buffer, at: number, lines: Uint8Array, { removed }: HeadEdit): number {
  let position = at
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(10, start) + 1
    const nameLength = lines.indexOf(58, start) - start
    // RFC 9110 7.6.3: a gateway names itself in Via, whatever a flow does with the field.
    if (nameLength === VIA.length || !removed.include(lines, start, nameLength)) {
      bytes.set(lines.subarray(start, end), position)
      position += end - start
    }
    start = end
  }
  return position
}
