/** `<property>`: sets or removes a typed property of a scope; in the scope transport, a header field. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { fieldNameError } from '../field-rules.ts'
import { mediator } from '../mediator.ts'
import { type Scope, SCOPES } from '../message.ts'
import { compileMatcher, parsePattern } from '../pattern.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { convertTo, PROPERTY_TYPES, type PropertyType } from '../property-type.ts'
import { OF_WHOLE_MESSAGES, WITHOUT_EFFECT } from '../transport-properties.ts'
import type { XmlElementNode } from '../xml-tree.ts'

interface PropertySettings {
  readonly name: string
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
    const name = parser.required(element, 'name')
    const given = parser.choice(element, 'scope', [...SCOPES.keys()], 'default')
    const action = parser.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || given === undefined || action === undefined) return undefined
    const scope = SCOPES.get(given)!
    const why = scope === 'transport' ? fieldNameError(name, action === 'remove') : ''
    if (why !== '') return parser.error(element, 'name', why, 'remove it', name)
    if (scope === 'axis2' && Object.hasOwn(WITHOUT_EFFECT, name)) {
      parser.warn(element, 'name', `${name} has no effect`, WITHOUT_EFFECT[name]!)
    }
    if (action === 'set') {
      const value = readValue(element, parser)
      return value === undefined ? undefined : { name, scope, value }
    }
    for (const other of ['value', 'expression', 'type', 'pattern', 'group']) {
      if (element.has(other)) parser.error(element, other, 'has no effect with action="remove"', 'remove it')
    }
    parser.checkElements(element, [])
    return { name, scope, value: null }
  },

  needs({ name, scope, value }, context) {
    if (scope === 'axis2' && OF_WHOLE_MESSAGES.includes(name)) return 'worker'
    if (value === null) return scope === 'transport' ? 'constant' : 'heads'
    if (!('kind' in value.from)) return 'heads'
    const isLiteral = value.from.kind === 'literal' && value.pattern === ''
    return scope === 'transport' && isLiteral ? 'constant' : context.expression(value.from)
  },

  compile({ name, scope, value: source }, context) {
    if (source === null) {
      return message => {
        message.remove(scope, name)
        return true
      }
    }
    const { from, type, pattern, group } = source
    const { warn } = context
    const evaluate = 'kind' in from ? context.compileExpression(from) : () => ({ kind: 'xml', nodes: [from] }) as const
    const match = pattern === '' ? null : compileMatcher(pattern, warn)
    return message => {
      const value = evaluate(message)
      const matched = match === null ? value : (match(String(convertTo(value, 'STRING') ?? ''))?.[group] ?? '')
      const converted = convertTo(matched, type)
      // Without a valid value the property is removed: the old value may mean something else.
      if (converted === undefined) {
        warn(`the value of property ${name} is not a valid ${type}`)
        message.remove(scope, name)
      } else message.set(scope, name, converted)
      return true
    }
  },
})

function readValue(element: XmlElement, parser: SequenceParser): PropertyValue | undefined {
  const type = parser.choice(element, 'type', PROPERTY_TYPES, 'STRING')
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
  const from = parser.valueOrExpression(element)
  if (from === undefined) return undefined
  if (from.kind === 'literal' && pattern === '' && convertTo(from.value, type) === undefined) {
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
