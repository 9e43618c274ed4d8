/**
 * `<class>`: runs the function `mediate` of an ES module of the operator, on the thread of the message. An edited
 * module is loaded again, within a second. A module that blocks costs its thread and the messages there: long work
 * belongs into a promise, or into `<script>`.
 */
import { isJavaClass } from '../../config/module-file.ts'
import { servicesOf } from '../backend-calls.ts'
import type { ClassContext, ClassMessage, Mediate } from '../class-interface.ts'
import type { Expression } from '../expression.ts'
import { fieldNameError } from '../field-rules.ts'
import { withDoubles } from '../formats/json-text.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import { type Message, type Scope, SCOPES } from '../message.ts'
import type { TaskServices } from '../task-calls.ts'
import { type Json, markupOf, textOf, type Value } from '../value.ts'
import { writeXml } from '../xml-tree.ts'

interface ClassSettings {
  readonly path: string
  readonly properties: readonly { readonly name: string; readonly value: Expression }[]
}

const FAILED = 102580
const LOG_MAX = 8192
const AS_MODULE = 'write it as an ES module in the configuration folder, and name its file: mediators/order.mjs'
/** Classes that the reference platform comes with, and what takes their place. */
const OF_THE_PLATFORM: Readonly<Record<string, string>> = {
  APIMgtFaultHandler: 'remove it: log and metrics have each fault',
  APIMgtResponseHandler: 'remove it: log and metrics have each response',
  JsonSchemaValidator: 'attach the policy jsonThreatProtector, and remove it',
  XMLSchemaValidator: 'attach the policy xmlThreatProtector, and remove it',
  RegularExpressionProtector: 'attach the policy regularExpressionThreatProtector, and remove it',
}

export const classMediator = mediator<ClassSettings>({
  name: 'class',
  attributes: ['name'],
  elements: ['property'],

  parse(element, parser) {
    const path = parser.required(element, 'name')
    if (path === undefined) return undefined
    if (isJavaClass(path)) {
      const known = path.slice(path.lastIndexOf('.') + 1)
      const hint = Object.hasOwn(OF_THE_PLATFORM, known) ? OF_THE_PLATFORM[known]! : AS_MODULE
      return parser.error(element, 'name', 'is a Java class, which does not run here', hint, path)
    }
    if (!/\.m?js$/.test(path)) {
      return parser.error(element, 'name', 'is not the file of an ES module', 'for example mediators/order.mjs', path)
    }
    const properties = element.children.flatMap(child => {
      parser.checkAttributes(child, ['name', 'value', 'expression'])
      const name = parser.required(child, 'name')
      const value = parser.valueOrExpression(child)
      return name === undefined || value === undefined ? [] : [{ name, value }]
    })
    parser.uses(element, 'module', path)
    return { path, properties }
  },

  needs: () => 'worker',

  compile({ path, properties }, context) {
    const evaluates = properties.map(({ name, value }) => [name, context.compileExpression(value)] as const)
    return async message => {
      const services = servicesOf(message)
      const mediate = (await services.code.module(path, 'mediate')) as Mediate
      const given = Object.fromEntries(evaluates.map(([name, evaluate]) => [name, plain(evaluate(message))]))
      try {
        return (await mediate(view(message, services), contextOf(services, message, given))) !== false
      } catch (error) {
        if (error instanceof MediationFault) throw error
        throw new MediationFault({
          code: FAILED,
          message: 'The message could not be mediated',
          cause: causeOf(error, path),
        })
      }
    }
  },
})

/** Class of the error and its place: its message may hold text of a client. */
function causeOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `${path} throws a value that is no error`
  const file = path.slice(path.lastIndexOf('/') + 1)
  const stack = error.stack ?? ''
  const at = stack.indexOf(`${file}?`)
  const line = at < 0 ? undefined : /^\?[\d.]+:(\d+)/.exec(stack.slice(at + file.length))?.[1]
  return `${path}${line === undefined ? '' : `:${line}`} throws ${error.name}`
}

function contextOf(
  { api, flow, report }: TaskServices,
  message: Message,
  properties: ClassContext['properties'],
): ClassContext {
  return {
    ...{ properties, api, flow },
    log: (level, text) => report(level, 'class', { MESSAGE: message.secrets.mask(String(text)).slice(0, LOG_MAX) }),
  }
}

function view(message: Message, services: TaskServices): ClassMessage {
  const head: Omit<ClassMessage, keyof ReturnType<typeof payloadView>> = {
    get method() {
      return message.head.method
    },
    get target() {
      return message.head.target
    },
    get status() {
      return message.head.status
    },
    getProperty: (name, scope = 'default') => plain(message.read(scopeOf(scope), name)),
    setProperty: (name, value, scope = 'default') => message.set(scopeOf(scope), name, valueFor(value)),
    removeProperty: (name, scope = 'default') => message.remove(scopeOf(scope), name),
    getField(name) {
      const value = message.get('transport', name)
      return value === undefined ? undefined : textOf(value)
    },
    setField(name, value) {
      const why = fieldNameError(name)
      if (why !== '') throw new TypeError(`${name} ${why}`)
      message.set('transport', name, String(value))
    },
    removeField: name => message.remove('transport', name),
  }
  // Getters must reach the message: a spread would copy their values.
  const properties = Object.getOwnPropertyDescriptors(payloadView(message, services))
  return Object.defineProperties(head, properties) as ClassMessage
}

function payloadView(
  message: Message,
  services: TaskServices,
): Pick<ClassMessage, 'json' | 'text' | 'bytes' | 'setPayload'> {
  const replaced = (contentType: string) => {
    message.set('axis2', 'messageType', contentType)
    message.remove('axis2', 'NO_ENTITY_BODY')
  }
  return {
    get json() {
      const { json } = message
      return json === undefined ? undefined : structuredClone(withDoubles(json))
    },
    set json(value: unknown) {
      message.json = structuredClone(value) as Json
      replaced('application/json')
    },
    get text() {
      return textOfPayload(message)
    },
    set text(text: string) {
      message.payload = { kind: 'text', text: String(text) }
      replaced('text/plain')
    },
    get bytes() {
      const { payload } = message
      return payload?.kind === 'binary' ? payload.bytes.slice() : Buffer.from(textOfPayload(message))
    },
    set bytes(bytes: Uint8Array) {
      message.payload = { kind: 'binary', bytes: new Uint8Array(bytes) }
      replaced('application/octet-stream')
    },
    setPayload(text, contentType) {
      message.payload = services.parse(String(text), contentType)
      replaced(contentType)
    },
  }
}

function textOfPayload({ payload }: Message): string {
  if (payload === null) return ''
  if (payload.kind === 'xml') return writeXml(payload.root)
  return payload.kind === 'binary' ? Buffer.from(payload.bytes).toString() : payload.text
}

function scopeOf(name: string): Scope {
  const scope = name === 'variable' ? 'variable' : SCOPES.get(name)
  if (scope === undefined) throw new RangeError(`there is no scope ${name}`)
  return scope
}

function plain(value: Value | undefined): unknown {
  if (typeof value !== 'object') return value
  return value.kind === 'json' ? structuredClone(withDoubles(value.value)) : markupOf(value)
}

function valueFor(value: unknown): Value {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  if (value === undefined || value === null) return ''
  return { kind: 'json', value: structuredClone(value) as Json }
}
