/** `<variable>`: sets or removes a typed variable, which `${vars.name}` and `$var:name` read. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import { convertIn, isOfType, type PropertyType } from '../property-type.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Value } from '../value.ts'
import type { XmlElementNode } from '../xml-tree.ts'

interface VariableSettings {
  readonly name: string
  /** null: removes the variable. */
  readonly value: VariableValue | null
}

interface VariableValue {
  readonly type: PropertyType
  /** A child element of the type XML is the value itself. */
  readonly from: Expression | XmlElementNode
}

const TYPES = ['STRING', 'BOOLEAN', 'INTEGER', 'LONG', 'DOUBLE', 'JSON', 'XML'] as const

export const variable = mediator<VariableSettings>({
  name: 'variable',
  attributes: ['name', 'type', 'value', 'expression', 'action'],
  elements: null,

  parse(element, parser) {
    const name = parser.required(element, 'name')
    const action = parser.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || action === undefined) return undefined
    if (action === 'set') {
      const value = readValue(element, parser)
      return value === undefined ? undefined : { name, value }
    }
    for (const other of ['value', 'expression', 'type']) {
      if (element.has(other)) parser.error(element, other, 'has no effect with action="remove"', 'remove it')
    }
    parser.checkElements(element, [])
    return { name, value: null }
  },

  needs({ value }, context) {
    if (value === null || !('kind' in value.from)) return 'heads'
    // Only workers parse the text of an element.
    return value.type === 'OM' ? 'worker' : context.expression(value.from)
  },

  compile({ name, value: source }, context) {
    if (source === null) {
      return message => {
        message.remove('variable', name)
        return true
      }
    }
    const { type, from } = source
    const evaluate = 'kind' in from ? context.compileExpression(from) : (): Value => ({ kind: 'xml', nodes: [from] })
    return message => {
      const { uses } = message.secrets
      const value = convertIn(message, evaluate(message), type)
      if (value !== undefined) message.secrets.computed(value, uses)
      // Without a valid value the variable is removed: the old value may mean something else.
      if (value === undefined) {
        context.warn(`the value of variable ${name} is not a valid ${type}`)
        message.remove('variable', name)
      } else message.set('variable', name, value)
      return true
    }
  },
})

function readValue(element: XmlElement, parser: SequenceParser): VariableValue | undefined {
  const given = parser.choice(element, 'type', TYPES, 'STRING')
  if (given === undefined) return undefined
  const type = given === 'XML' ? 'OM' : given
  const [inner, second] = element.children
  if (inner !== undefined) {
    const isAlone = second === undefined && !element.has('value') && !element.has('expression')
    if (type === 'OM' && isAlone) return { type, from: parser.tree(inner) }
    return parser.error(inner, '', 'is allowed as the value of type XML only', 'use value or expression')
  }
  const from = parser.valueOrExpression(element)
  if (from === undefined) return undefined
  if (from.kind === 'literal' && !isOfType(from.value, type)) {
    return parser.error(element, 'value', `is not a valid ${given}`, 'correct value or type', String(from.value))
  }
  return { type, from }
}
