/** Properties that an endpoint sets on the requests for it, and `<authentication>`, which sets Authorization. */
import type { XmlElement } from '../config/xml.ts'
import type { ElementParser } from './element-parser.ts'
import { parseOAuth } from './endpoint-oauth.ts'
import type { EndpointForm, EndpointProperty } from './endpoint-plan.ts'
import type { Expression } from './expression.ts'
import { compileExpression, type Evaluate } from './expression-compiler.ts'
import { type Message, SCOPES } from './message.ts'

/** `<property>` within `<endpoint>`. Undefined after an error. */
export function parseEndpointProperty(element: XmlElement, parser: ElementParser): EndpointProperty | undefined {
  parser.checkAttributes(element, ['name', 'value', 'expression', 'scope', 'type'])
  parser.checkElements(element, [])
  const name = parser.required(element, 'name')
  const scope = parser.choice(element, 'scope', [...SCOPES.keys()], 'default')
  const value = parser.valueOrExpression(element)
  if (name === undefined || scope === undefined || value === undefined) return undefined
  return { name, scope: SCOPES.get(scope)!, value }
}

/** The parts of the form of an endpoint that `<authentication>` sets. */
type Authentication = Pick<EndpointForm, 'properties' | 'oauth'>

/** `<authentication>` within `<http>`. Undefined after an error. No diagnostic shows user or password. */
export function parseAuthentication(element: XmlElement, parser: ElementParser): Authentication | undefined {
  parser.checkElements(element, ['basicAuth', 'oauth'])
  const [token, basic] = [parser.only(element, 'oauth'), parser.only(element, 'basicAuth')]
  if (token !== undefined && basic !== undefined) {
    return parser.error(token, '', 'stands beside <basicAuth>', 'remove one of them')
  }
  if (token !== undefined) {
    const oauth = parseOAuth(token, parser)
    return oauth === undefined ? undefined : { oauth }
  }
  if (basic === undefined) return parser.error(element, '', 'is empty', 'add <basicAuth> or <oauth>')
  const property = parseBasic(basic, parser)
  return property === undefined ? undefined : { properties: [property] }
}

function parseBasic(basic: XmlElement, parser: ElementParser): EndpointProperty | undefined {
  parser.checkElements(basic, ['username', 'password'])
  const [user, password] = ['username', 'password'].map(name => textOf(basic, name, parser))
  if (user === undefined || password === undefined) return undefined
  const credentials: Expression = { kind: 'call', name: 'concat', of: [user, literal(':'), password] }
  const encoded: Expression = { kind: 'call', name: 'base64Encode', of: [credentials] }
  const value: Expression = { kind: 'call', name: 'concat', of: [literal('Basic '), encoded] }
  return { name: 'Authorization', scope: 'transport', value }
}

/** Text of a child; all of it in `{…}` or `${…}` is an expression. */
function textOf(parent: XmlElement, name: string, parser: ElementParser): Expression | undefined {
  const child = parser.only(parent, name)
  const text = child?.text.trim() ?? ''
  if (child === undefined || text === '') return parser.error(parent, name, 'is missing', 'add it')
  const inner = text.startsWith('${') ? text : /^\{([\s\S]*)\}$/.exec(text)?.[1]
  return inner === undefined ? literal(text) : parser.expressionIn(child, inner, '', true)
}

function literal(value: string): Expression {
  return { kind: 'literal', value }
}

interface Setter {
  readonly property: EndpointProperty
  readonly evaluate: Evaluate
}

const compiled = new WeakMap<EndpointForm, readonly Setter[]>()
/** Where an expression that cannot be evaluated is logged. Evaluations are synchronous. */
const place = { request: null as Message | null }

/** Sets the properties of the endpoint on a request for it. */
export function setProperties(request: Message, form: EndpointForm): void {
  if (form.properties === undefined) return
  const setters = compiled.get(form) ?? form.properties.map(compileProperty)
  compiled.set(form, setters)
  place.request = request
  for (const { property, evaluate } of setters) request.set(property.scope, property.name, evaluate(request))
  place.request = null
}

function compileProperty(property: EndpointProperty): Setter {
  const warn = (cause: string): void => {
    const fields = { SEQUENCE: `property ${property.name} of an endpoint`, CAUSE_OF_ERROR: cause }
    place.request?.task?.report('warn', 'sequence failed', fields)
  }
  return { property, evaluate: compileExpression(property.value, warn) }
}
