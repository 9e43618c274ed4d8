/**
 * `<interceptor includes="…"><endpoint/></interceptor>`: asks an interceptor service what becomes of a message.
 * Contract: the OpenAPI definition of interceptor services of the reference platform, version 1, without trailers
 * and dynamic endpoints. Bodies are Base64.
 */
import { callBackend, servicesOf } from '../backend-calls.ts'
import type { SequenceEndpoint } from '../endpoint-plan.ts'
import { fieldNameError } from '../field-rules.ts'
import { jsonOf } from '../formats/json-text.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type AnyMediator, mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { type Json, textOf } from '../value.ts'
import type { TransferredMessage } from '../worker-task.ts'
import { headersOf } from './kept-request.ts'

const PARTS = ['request_headers', 'request_body', 'response_headers', 'response_body', 'invocation_context'] as const
type Part = (typeof PARTS)[number]
/** Parts of the contract that no flow has. */
const TRAILERS: readonly string[] = ['request_trailers', 'response_trailers']

interface InterceptorSettings {
  readonly includes: readonly Part[]
  readonly endpoint: SequenceEndpoint
}

type Answer = Readonly<Record<string, Json>>

/** Keeps `interceptorContext` for the response flow. */
const CONTEXT = 'INTERCEPTOR_CONTEXT'

export const interceptor: AnyMediator = mediator<InterceptorSettings>({
  name: 'interceptor',
  attributes: ['includes'],
  elements: ['endpoint'],

  parse(element, parser) {
    const words = element.attribute('includes').split(/[\s,]+/)
    const given = words.filter(word => word !== '')
    const includes = PARTS.filter(part => given.includes(part))
    const trailers = given.filter(word => TRAILERS.includes(word))
    const unknown = given.find(word => !PARTS.some(part => part === word) && !TRAILERS.includes(word))
    const child = parser.only(element, 'endpoint')
    const endpoint = child === undefined ? undefined : parser.endpoint(child)
    if (unknown !== undefined) {
      return parser.error(element, 'includes', `expected some of ${PARTS.join(', ')}`, 'correct it', unknown)
    }
    if (child === undefined) return parser.error(element, 'endpoint', 'is missing', 'add it')
    if (trailers.length > 0) {
      const names = trailers.join(', ')
      parser.warn(element, 'includes', `the service gets no ${names}: flows see no trailers`, `remove ${names}`)
    }
    return endpoint === undefined ? undefined : { includes, endpoint }
  },

  needs: () => 'worker',

  compile({ includes, endpoint }, context) {
    return async message => {
      const warn = (cause: string) => context.warn(cause)
      const answer = await ask(message, includes, endpoint, warn)
      return obey(message, answer, warn)
    }
  },
})

type Warn = (cause: string) => void

/** Rejects with MediationFault. */
async function ask(
  message: Message,
  includes: readonly Part[],
  endpoint: SequenceEndpoint,
  warn: Warn,
): Promise<Answer> {
  const services = servicesOf(message)
  const request = message.copy()
  // Only parts that the policy includes reach the service.
  for (const name of fieldNames(request)) request.remove('transport', name)
  const question = questionOf(message, includes, services.transfer(message), warn)
  request.payload = { kind: 'json', text: JSON.stringify(question) }
  request.set('axis2', 'messageType', 'application/json')
  // The endpoint alone says the path.
  request.remove('axis2', 'REST_URL_POSTFIX')
  const response = await callBackend(request, endpoint, false)
  const { status } = response.receivedHead
  const { payload } = response
  const json = payload?.kind === 'json' ? jsonOf(payload) : null
  if (status < 200 || status > 299) throw failed(`the interceptor service answered ${status}`)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw failed('its answer is no JSON object')
  return json as Answer
}

function failed(cause: string): MediationFault {
  return new MediationFault({ message: 'Interceptor failed', cause })
}

function fieldNames(message: Message): ReadonlySet<string> {
  const kept = Array.from(message.keptFields(), ([name]) => name)
  return new Set([...kept, ...message.changedNames()])
}

function questionOf(message: Message, includes: readonly Part[], transferred: TransferredMessage, warn: Warn): Answer {
  const side = message.isFromBackend ? 'response' : 'request'
  const question: Record<string, Json> = {}
  if (message.isFromBackend) {
    question.responseCode = transferred.status
    Object.assign(question, keptRequest(message, includes, warn))
  }
  if (includes.includes(`${side}_headers`)) question[`${side}Headers`] = headersOf(transferred.fields)
  if (includes.includes(`${side}_body`)) question[`${side}Body`] = bodyOf(transferred)
  if (includes.includes('invocation_context')) question.invocationContext = contextOf(message, transferred)
  const kept = textOf(message.get('default', CONTEXT))
  if (message.isFromBackend && kept !== '') question.interceptorContext = JSON.parse(kept) as Json
  return question
}

/** The request as the client sent it, with the response to it. */
function keptRequest({ request }: Message, includes: readonly Part[], warn: Warn): Answer {
  const { headers, body } = request ?? {}
  const kept: Record<string, Json> = {}
  if (includes.includes('request_headers') && headers !== undefined) kept.requestHeaders = headers
  if (!includes.includes('request_body') || body === undefined) return kept
  if (body === null) warn('the body of the request is too long for an interceptor service in the response flow')
  else kept.requestBody = body
  return kept
}

function bodyOf({ body }: TransferredMessage): string {
  if (body.kind === 'bytes') return Buffer.from(body.bytes).toString('base64')
  if (body.kind === 'file') throw failed('the body is too long for an interceptor service')
  return ''
}

function contextOf(message: Message, { method, target }: TransferredMessage): Json {
  const of = (scope: 'default' | 'axis2', name: string) => textOf(message.get(scope, name))
  return {
    requestId: of('default', 'MessageID'),
    apiName: of('default', 'API_NAME'),
    apiVersion: of('default', 'SYNAPSE_REST_API_VERSION'),
    basePath: of('default', 'REST_API_CONTEXT'),
    method,
    path: target,
    pathTemplate: of('default', 'API_ELECTED_RESOURCE'),
    source: of('axis2', 'REMOTE_ADDR'),
  }
}

// ---- answers --------------------------------------------------------------------------------------------------------

/** Returns false where the service answers the client itself. Throws MediationFault. */
function obey(message: Message, answer: Answer, warn: Warn): boolean {
  requireTypes(answer)
  const respondsAtOnce = answer.directRespond === true && !message.isFromBackend
  // The response to the client has only what the service says.
  if (respondsAtOnce) for (const name of message.changedNames()) message.remove('transport', name)
  changeFields(message, answer, warn)
  const { responseCode: status, body, interceptorContext } = answer
  if (typeof status === 'number' && (respondsAtOnce || message.isFromBackend)) {
    if (!isFinalStatus(status)) throw failed('responseCode in its answer is not a status from 200 to 599')
    message.set('axis2', 'HTTP_SC', status)
  }
  if (interceptorContext !== undefined) message.set('default', CONTEXT, JSON.stringify(interceptorContext))
  for (const member of ['dynamicEndpoint', 'trailersToAdd', 'trailersToReplace', 'trailersToRemove']) {
    if (answer[member] !== undefined) warn(`${member} of an interceptor service has no effect`)
  }
  if (typeof body === 'string') replaceBody(message, body)
  else if (respondsAtOnce) message.payload = null
  if (respondsAtOnce) message.outcome = 'responded'
  return !respondsAtOnce
}

const isMap = (value: Json) => typeof value === 'object' && !Array.isArray(value)

/** Types of the members that say what becomes of the message; null is as good as absent. */
const TYPES: readonly (readonly [member: string, isRight: (value: Json) => boolean, expected: string])[] = [
  ['directRespond', value => typeof value === 'boolean', 'a boolean'],
  ['responseCode', value => typeof value === 'number', 'a number'],
  ['body', value => typeof value === 'string', 'a text in Base64'],
  ['headersToAdd', isMap, 'an object'],
  ['headersToReplace', isMap, 'an object'],
  ['headersToRemove', value => Array.isArray(value), 'a list'],
]

/** A decision of the service that is not understood ends the flow: the service may have refused the message. */
function requireTypes(answer: Answer): void {
  for (const [member, isRight, expected] of TYPES) {
    const value = answer[member] ?? null
    if (value !== null && !isRight(value)) throw failed(`${member} in its answer is not ${expected}`)
  }
}

function isFinalStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 200 && value <= 599
}

function changeFields(message: Message, answer: Answer, warn: Warn): void {
  const { headersToRemove: removed } = answer
  for (const name of Array.isArray(removed) ? removed : []) {
    if (typeof name === 'string') message.remove('transport', name)
  }
  for (const member of ['headersToReplace', 'headersToAdd'] as const) {
    const headers = answer[member]
    if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) continue
    for (const [name, value] of Object.entries(headers)) {
      const reason = fieldNameError(name)
      if (reason !== '') {
        warn(`a field of ${member} ${reason}`)
        continue
      }
      if (typeof value === 'object') {
        warn(`a field of ${member} is no text`)
        continue
      }
      // A message has one content type.
      const isAdded = member === 'headersToAdd' && name.toLowerCase() !== 'content-type'
      const before = isAdded ? textOf(message.get('transport', name)) : ''
      message.set('transport', name, before === '' ? String(value) : `${before}, ${String(value)}`)
    }
  }
}

/** RFC 4648 4 and 5, with or without padding. */
function isBase64(text: string): boolean {
  const digits = text.replace(/={1,2}$/, '')
  const isWhole = digits === text ? text.length % 4 !== 1 : text.length % 4 === 0
  return isWhole && !/[^\w+/-]/.test(digits)
}

/** Fault of a body without room in the memory. */
const NO_ROOM = 102533

function replaceBody(message: Message, body: string): void {
  const text = body.replace(/\s+/g, '')
  if (!isBase64(text)) throw failed('the body in its answer is not Base64')
  const bytes = Buffer.from(text, 'base64')
  const contentType = textOf(message.get('transport', 'content-type'))
  try {
    message.payload = bytes.length === 0 ? null : servicesOf(message).parse(bytes, contentType)
  } catch (error) {
    if (!(error instanceof MediationFault) || error.raised.code === NO_ROOM) throw error
    throw failed(`the body in its answer is not of the type of the message: ${error.raised.cause}`)
  }
}
