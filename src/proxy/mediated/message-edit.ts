/**
 * The changes of a flow in a message, as an edit of its head. Framing, fields of the connection, the correlation
 * field and credentials of D111 stay as the gateway writes them: a change of one is ignored and logged.
 */
import type { Report } from '../exchange/connection-context.ts'
import { type FieldChange, HeadEdit } from '../exchange/head-edit.ts'
import { type FieldKinds, type Kind, KIND } from '../../http1/field-kinds.ts'
import { isBodiless, RESET_CONTENT } from '../../http1/framing.ts'
import { reasonPhrase } from '../../faults/fault-details.ts'
import { namedType } from '../../mediation/formats/body-types.ts'
import { fieldNameError, fieldValueError, methodOf, targetOf } from '../../mediation/field-rules.ts'
import type { Message } from '../../mediation/message.ts'
import { textOf } from '../../mediation/value.ts'

/** Fields of framing and of the connection. */
const OF_CONNECTION: readonly Kind[] = [
  ...[KIND.CONTENT_LENGTH, KIND.TRANSFER_ENCODING, KIND.CONNECTION, KIND.KEEP_ALIVE, KIND.HOP_BY_HOP, KIND.TRAILER],
  ...[KIND.TE, KIND.UPGRADE, KIND.CORRELATION],
]
/** The gateway answers an expectation, and only it passes credentials on. */
const KEPT_IN_REQUESTS: readonly Kind[] = [...OF_CONNECTION, KIND.EXPECT, KIND.CREDENTIAL]
/** A response has a Date (RFC 9110 6.6.1). */
const KEPT_IN_RESPONSES: readonly Kind[] = [...OF_CONNECTION, KIND.DATE]
const TARGET_MAX = 4096
const HOST = /^[\w.:[\]-]{1,512}$/
const URL_START = /^[a-z][a-z0-9+.-]*:\/\//i
const SWITCHING_PROTOCOLS = 101

/** Rules for changes of one direction. */
export interface EditRules {
  /** Kinds of the fields of that direction. */
  readonly kinds: FieldKinds
  readonly report: Report
  /** API and version, for the log. */
  readonly api: string
}

type Warn = (name: string, cause: string) => void

function warning({ report, api }: EditRules): Warn {
  return (name, cause) => report('warn', 'change of a head ignored', { API: api, FIELD: name, CAUSE_OF_ERROR: cause })
}

/**
 * The edit of a request, null without changes. `path`: what `To` was. `contextLength`: length of the context in it.
 * Throws where the changes have too many bytes.
 */
export function requestEdit(message: Message, path: string, contextLength: number, rules: EditRules): HeadEdit | null {
  const warn = warning(rules)
  const fields = fieldChanges(message, KEPT_IN_REQUESTS, rules.kinds, warn)
  const at = fields.findIndex(({ name }) => name.toLowerCase() === 'host')
  const host = at < 0 ? '' : (fields[at]!.value ?? '')
  const others = at < 0 ? fields : fields.toSpliced(at, 1)
  const isHost = host === '' || HOST.test(host)
  if (!isHost) warn('Host', 'is not a host')
  const changes = {
    method: changedMethod(message, warn),
    host: isHost ? host : '',
    ...changedTarget(message, path, contextLength, warn),
  }
  const isSame = others.length === 0 && changes.method === '' && changes.host === '' && !('target' in changes)
  return isSame ? null : new HeadEdit(others, changes)
}

/** The edit of a response with that status, null without changes. Throws where the changes have too many bytes. */
export function responseEdit(message: Message, status: number, isHead: boolean, rules: EditRules): HeadEdit | null {
  const warn = warning(rules)
  const fields = fieldChanges(message, KEPT_IN_RESPONSES, rules.kinds, warn)
  const changes = status === SWITCHING_PROTOCOLS ? {} : changedStatus(message, status, warn)
  const lengths = changes.status === undefined ? [] : changedLength(changes.status, status, isHead)
  const isSame = fields.length === 0 && changes.status === undefined
  return isSame ? null : new HeadEdit([...fields, ...lengths], changes)
}

/** Whether a response of that status has no content, whatever its request was. */
export function hasNoContent(status: number): boolean {
  return isBodiless(status) || status === RESET_CONTENT
}

/** A status that has no content, or had none: the length is 0 in a response that could have content now. */
function changedLength(status: number, before: number, isHead: boolean): readonly FieldChange[] {
  if (status === RESET_CONTENT || (isBodiless(before) && !isBodiless(status) && !isHead)) {
    return [{ name: 'Content-Length', value: '0' }]
  }
  return status === 304 && !isHead ? [{ name: 'Content-Length', value: undefined }] : []
}

function fieldChanges(message: Message, kept: readonly Kind[], kinds: FieldKinds, warn: Warn): FieldChange[] {
  const changes = new Map<string, FieldChange>()
  for (const name of message.changedNames()) {
    if (!kept.includes(kinds.kindOf(name))) changes.set(name, { name, value: undefined })
  }
  for (const [name, value] of message.fields()) {
    const lower = name.toLowerCase()
    const why = changes.has(lower) ? fieldNameError(name) : 'is set by the gateway alone'
    const text = textOf(value)
    const invalid = why === '' ? fieldValueError(text) : why
    // Without a valid value the field is removed: the old value may mean something else.
    if (invalid !== '') warn(lower, invalid)
    else changes.set(lower, { name, value: text })
  }
  const type = namedType(textOf(message.get('axis2', 'ContentType')))
  if (type !== '' && !changes.has('content-type') && fieldValueError(type) === '') {
    changes.set('content-type', { name: 'Content-Type', value: type })
  }
  return [...changes.values()]
}

/** '' for the same method. Throws MediationFault. */
function changedMethod(message: Message, warn: Warn): string {
  const { method } = message.head
  const before = message.receivedHead.method
  if (method === before || method === '') return ''
  methodOf(method)
  if (before !== 'HEAD' && method !== 'HEAD') return method
  // HEAD changes the framing of the response.
  warn('HTTP_METHOD', before === 'HEAD' ? 'a HEAD request stays one' : 'no request becomes HEAD')
  return ''
}

type TargetChange = { readonly target?: string; readonly shownTarget?: string }

/** REST_URL_POSTFIX replaces the target, and so does a path in `To`. Throws where the target is too long. */
function changedTarget(message: Message, path: string, contextLength: number, warn: Warn): TargetChange {
  const { target: postfix } = message.head
  const before = message.receivedHead.target
  const { to } = message
  const isMoved = postfix === before && to !== path && to !== ''
  // The endpoints of the API are the destination; `send` with an endpoint names another one.
  if (isMoved && URL_START.test(to)) return {}
  const given = isMoved ? (to.startsWith(path.slice(0, contextLength)) ? to.slice(contextLength) : to) : postfix
  if (given === before) return {}
  if (isMoved && !/^(?:[/?]|$)/.test(given)) {
    warn('To', 'is no path with a query')
    return {}
  }
  const target = targetOf(given)
  // A request whose target stays as it was would be another one than the sequence has made.
  if (target.length > TARGET_MAX) throw new Error(`a target is longer than ${TARGET_MAX} bytes`)
  return { target, shownTarget: message.secrets.mask(target) }
}

function changedStatus(message: Message, before: number, warn: Warn): { status?: number; reason?: string } {
  const { status, reason } = message.head
  const description = fieldValueError(reason) === '' ? reason : ''
  if (status === before && description === '') return {}
  if (status >= 200 && status <= 599) return { status, reason: description || reasonPhrase(status) }
  warn('HTTP_SC', 'is not a status from 200 to 599')
  return {}
}
