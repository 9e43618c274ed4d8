/** `<property>`: sets or removes a typed property of a scope; in the scope transport, a header field. */
import type { XmlElement } from '../../config/xml.ts'
import { sendAccepted } from '../accepted-requests.ts'
import type { Expression } from '../expression.ts'
import { fieldNameError, isMethod } from '../field-rules.ts'
import { type FlowNeeds, mostOf } from '../flow-plan.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import { type Message, type Scope, SCOPES } from '../message.ts'
import type { NeedsContext } from '../needs.ts'
import { compileMatcher, parsePattern } from '../pattern.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { convertIn, isOfType, PROPERTY_TYPES, type PropertyType } from '../property-type.ts'
import { textOf } from '../value.ts'
import { acceptsRequest, OF_WHOLE_MESSAGES, ONLY_SCOPE, WITHOUT_EFFECT } from '../transport-properties.ts'
import type { XmlElementNode } from '../xml-tree.ts'

interface PropertySettings {
  /** An expression gives the name on each message. */
  readonly name: string | Expression
  readonly scope: Scope
  /** null: removes the property. */
  readonly value: PropertyValue | null
}

interface PropertyValue {
  readonly type: PropertyType
  /** A child element of the type OM is the value itself. */
  readonly from: Expression | XmlElementNode
  readonly pattern: string
  readonly group: number
}

const ATTRIBUTES = ['name', 'value', 'expression', 'scope', 'type', 'action', 'pattern', 'group']

export const property = mediator<PropertySettings>({
  name: 'property',
  attributes: ATTRIBUTES,
  elements: null,

  parse(element, parser) {
    const named = parser.textOrExpression(element, 'name')
    const given = parser.choice(element, 'scope', [...SCOPES.keys()], 'default')
    const action = parser.choice(element, 'action', ['set', 'remove'], 'set')
    if (named === undefined || given === undefined || action === undefined) return undefined
    const scope = SCOPES.get(given)!
    const name = named.kind === 'literal' ? String(named.value) : named
    if (typeof name === 'string' && !checkName(name, scope, action === 'remove', element, parser)) return undefined
    if (action === 'set') {
      const value = readValue(element, parser)
      if (value === undefined) return undefined
      if (scope === 'axis2' && name === 'HTTP_METHOD') checkMethod(value, element, parser)
      return { name, scope, value }
    }
    for (const other of ['value', 'expression', 'type', 'pattern', 'group']) {
      if (element.has(other)) parser.error(element, other, 'has no effect with action="remove"', 'remove it')
    }
    parser.checkElements(element, [])
    return { name, scope, value: null }
  },

  needs({ name, scope, value }, context) {
    const ofValue = needsOfValue(value, scope, context)
    if (typeof name === 'string') {
      const isOfWhole = (scope === 'axis2' && OF_WHOLE_MESSAGES.includes(name)) || acceptsRequest(scope, name)
      return isOfWhole ? 'worker' : ofValue
    }
    // The name may be that of a property which acts on whole messages.
    return scope === 'axis2' ? 'worker' : mostOf('heads', ofValue, context.expression(name))
  },

  compile({ name, scope, value: source }, context) {
    const nameOf = compileName(name, scope, source === null, context)
    // A name that only the message tells sets a property like any other.
    const accepts = typeof name === 'string' && acceptsRequest(scope, name)
    if (source === null) {
      return message => {
        const found = nameOf(message)
        if (found !== '') message.remove(scope, found)
        if (accepts) message.sendsLater = ''
        return true
      }
    }
    const { from, type, pattern, group } = source
    const { warn } = context
    const later = accepts ? context.define(sendAccepted(context)) : ''
    const evaluate = 'kind' in from ? context.compileExpression(from) : () => ({ kind: 'xml', nodes: [from] }) as const
    const match = pattern === '' ? null : compileMatcher(pattern, warn)
    return message => {
      const found = nameOf(message)
      if (found === '') return true
      const { uses } = message.secrets
      const value = evaluate(message)
      const matched = match === null ? value : (match(textOf(convertIn(message, value, 'STRING')))?.[group] ?? '')
      const converted = convertIn(message, matched, type)
      if (converted !== undefined) message.secrets.computed(converted, uses)
      // Without a valid value the property is removed: the old value may mean something else.
      if (converted === undefined) {
        // The value of an expression may be the text of a client.
        warn(`the value of ${typeof name === 'string' ? `property ${name}` : 'the property'} is not a valid ${type}`)
        message.remove(scope, found)
      } else message.set(scope, found, converted)
      if (accepts) message.sendsLater = textOf(converted) === 'true' ? later : ''
      return true
    }
  },
})

/** False after an error. */
function checkName(
  name: string,
  scope: Scope,
  isRemoved: boolean,
  element: XmlElement,
  parser: SequenceParser,
): boolean {
  const why = scope === 'transport' ? fieldNameError(name, isRemoved) : ''
  if (why !== '') parser.error(element, 'name', why, 'remove it', name)
  const isSteering = scope === 'axis2' || scope === 'default'
  if (isSteering && Object.hasOwn(WITHOUT_EFFECT, name)) {
    parser.warn(element, 'name', `${name} has no effect`, WITHOUT_EFFECT[name]!)
  } else if (isSteering && Object.hasOwn(ONLY_SCOPE, name) && ONLY_SCOPE[name] !== scope) {
    parser.warn(element, 'name', `${name} has no effect in this scope`, `write scope="${ONLY_SCOPE[name]}"`)
  }
  return why === ''
}

/** A method that no request can have is a fault of each message. */
function checkMethod({ from, pattern }: PropertyValue, element: XmlElement, parser: SequenceParser): void {
  if (pattern !== '' || !('kind' in from) || from.kind !== 'literal' || isMethod(String(from.value))) return
  const what = 'is no method, so that requests of this sequence are 102532'
  parser.warn(element, 'value', what, 'write a method in upper case: POST')
}

function needsOfValue(value: PropertyValue | null, scope: Scope, context: NeedsContext): FlowNeeds {
  if (value === null) return scope === 'transport' ? 'constant' : 'heads'
  const { from, type, pattern } = value
  if (!('kind' in from)) return 'heads'
  // Only workers parse the text of an element.
  if (type === 'OM') return 'worker'
  return scope === 'transport' && from.kind === 'literal' && pattern === '' ? 'constant' : context.expression(from)
}

/** The name of the property on a message; '' after a warning. */
function compileName(
  name: string | Expression,
  scope: Scope,
  isRemoved: boolean,
  { compileExpression, warn }: Pick<CompileContext, 'compileExpression' | 'warn'>,
): (message: Message) => string {
  if (typeof name === 'string') return () => name
  const evaluate = compileExpression(name)
  return message => {
    const found = textOf(evaluate(message))
    const why = found === '' ? 'is empty' : scope === 'transport' ? fieldNameError(found, isRemoved) : ''
    if (why === '') return found
    warn(`the name of the property ${why}`)
    return ''
  }
}

function readValue(element: XmlElement, parser: SequenceParser): PropertyValue | undefined {
  const hasElement = element.children.length > 0
  const type = parser.choice(element, 'type', PROPERTY_TYPES, hasElement ? 'OM' : 'STRING')
  if (type === undefined) return undefined
  const pattern = element.has('pattern') ? parser.pattern(element, 'pattern') : ''
  const group = readGroup(element, pattern ?? '', parser)
  if (pattern === undefined || group === undefined) return undefined
  const [inner, second] = element.children
  if (inner !== undefined) {
    const isAlone = second === undefined && !element.has('value') && !element.has('expression') && pattern === ''
    if (type === 'OM' && isAlone) return { type, from: parser.tree(inner), pattern, group }
    return parser.error(inner, '', 'is allowed as the value of type OM only', 'use value or expression')
  }
  const hasBoth = element.has('value') && element.has('expression')
  if (hasBoth) parser.warn(element, 'expression', 'has no effect beside value, which wins', 'remove one of them')
  const value = { kind: 'literal', value: element.attribute('value') } as const
  const from = hasBoth ? value : parser.valueOrExpression(element)
  if (from === undefined) return undefined
  if (from.kind === 'literal' && pattern === '' && !isOfType(from.value, type)) {
    return parser.error(element, 'value', `is not a valid ${type}`, 'correct value or type', String(from.value))
  }
  return { type, from, pattern, group }
}

function readGroup(element: XmlElement, pattern: string, parser: SequenceParser): number | undefined {
  if (!element.has('group')) return 0
  if (!element.has('pattern')) return parser.error(element, 'group', 'needs a pattern', 'add pattern')
  const given = element.attribute('group')
  const groupMax = parsePattern(pattern).groups
  const group = /^\d{1,2}$/.test(given) ? Number(given) : -1
  if (group >= 0 && group <= groupMax) return group
  return parser.error(element, 'group', `expected 0 to ${groupMax}`, 'correct it', given)
}
