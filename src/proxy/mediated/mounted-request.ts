/** The request as the implementation of a mounted API gets it: plain data, made while its head is valid. */
import { type Kind, KIND } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import type { RequestData } from '../../plan/mounted-messages.ts'
import type { Caller } from '../exchange/caller.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { fieldsIn, type HeadEdit } from '../exchange/head-edit.ts'
import { type Fields, fieldsOf } from './fed-message.ts'

type CallerData = RequestData['caller']

/** Fields about the way of the request, which any client may have written: the implementation has the address. */
const OF_THE_WAY: readonly Kind[] = [
  ...[KIND.FORWARDED, KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_HOST, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_OTHER],
]
const NOBODY: CallerData = {
  method: 'none',
  user: 'anonymous',
  tenant: '',
  isApplication: false,
  keyType: 'PRODUCTION',
  application: null,
  consumerKey: '',
  scopes: [],
  claims: {},
}

/** By caller, which is one object for all requests with the same credentials. */
const known = new WeakMap<Caller, CallerData>()

export function requestData(exchange: Exchange): RequestData {
  const { api, resource, requestEdit: edit, canonicalTarget, pathAt, backendPathAt } = exchange
  const host = edit === null || edit.host === '' ? exchange.host : edit.host
  return {
    method: exchange.sentMethod,
    target: edit?.target ?? canonicalTarget.slice(backendPathAt),
    base: canonicalTarget.slice(pathAt, backendPathAt),
    context: api!.path,
    template: resource?.template ?? '',
    verb: resource?.verb ?? '',
    scheme: exchange.isSecured ? 'https' : 'http',
    host,
    fields: withHost(edit === null ? seenFields(exchange.head!) : edited(seenFields(exchange.head!), edit), host),
    caller: exchange.caller === null ? NOBODY : callerData(exchange.caller),
    address: exchange.clientAddress,
    correlationId: exchange.correlationId,
  }
}

function seenFields(head: Head): Fields {
  const isAboutWay = OF_THE_WAY.some(kind => head.has(kind))
  if (!isAboutWay) return fieldsOf(head)
  const { bytes } = arena
  const hidden = new Set<string>()
  for (let field = 0; field < head.count; field++) {
    if (!OF_THE_WAY.includes(head.kinds[field] as Kind)) continue
    const at = head.nameAt(field)
    hidden.add(bytes.latin1Slice(at, at + head.nameLength(field)).toLowerCase())
  }
  return fieldsOf(head).filter(([name]) => !hidden.has(name.toLowerCase()))
}

/** The fields as a flow on the reactor has left them. */
function edited(fields: Fields, { removed, lines }: HeadEdit): Fields {
  const kept = fields.filter(([name]) => !removed.names.includes(name.toLowerCase()))
  return [...kept, ...fieldsIn(lines)]
}

/** A head that a flow on a worker has made has no Host of its own. `host`: '' removes the field. */
function withHost(fields: Fields, host: string): Fields {
  return fields.flatMap(([name, value]) => {
    if (name.length !== 4 || name.toLowerCase() !== 'host') return [[name, value] as const]
    return host === '' ? [] : [[name, host] as const]
  })
}

function callerData(caller: Caller): CallerData {
  const before = known.get(caller)
  if (before !== undefined) return before
  const { method, user, tenant, isApplication, keyType, application, consumerKey, heldScopes, claims } = caller
  // The application of an anonymous caller stands for its address.
  const isNamed = application !== null && method !== 'none'
  const data: CallerData = {
    ...{ method, user, tenant, isApplication, keyType, consumerKey, claims },
    application: isNamed ? { id: application.id, name: application.name, owner: application.owner } : null,
    scopes: [...heldScopes],
  }
  known.set(caller, data)
  return data
}
