/** `<property>`: sets or removes a property of a scope, with a type, or a field of the answer. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { fieldFault } from '../fields.ts'
import { mediator } from '../mediator.ts'
import { type Scope, SCOPES } from '../message.ts'
import { matcherOf, patternOf } from '../pattern.ts'
import type { Reading } from '../reading.ts'
import { convert, TYPES, type Type } from '../typed-value.ts'
import type { XmlElementNode } from '../xml-tree.ts'

interface PropertySettings {
  readonly name: string
  readonly scope: Scope
  /** null: it is removed. */
  readonly given: GivenValue | null
}

interface GivenValue {
  readonly type: Type
  /** An element within is the value itself. */
  readonly from: Expression | XmlElementNode
  readonly pattern: string
  readonly group: number
}

const ATTRIBUTES = ['name', 'value', 'expression', 'scope', 'type', 'action', 'pattern', 'group']

export const property = mediator<PropertySettings>({
  name: 'property',
  attributes: ATTRIBUTES,
  elements: null,

  read(element, reading) {
    const name = reading.required(element, 'name')
    const given = reading.choice(element, 'scope', [...SCOPES.keys()], 'default')
    const action = reading.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || given === undefined || action === undefined) return undefined
    const scope = SCOPES.get(given)!
    const why = scope === 'transport' ? fieldFault(name, action === 'remove') : ''
    if (why !== '') return reading.fault(element, 'name', why, 'leave it out', name)
    if (action === 'set') {
      const value = readValue(element, reading)
      return value === undefined ? undefined : { name, scope, given: value }
    }
    for (const other of ['value', 'expression', 'type', 'pattern', 'group']) {
      if (element.has(other)) reading.fault(element, other, 'is not acted on by action="remove"', 'leave it out')
    }
    reading.elements(element, [])
    return { name, scope, given: null }
  },

  compile({ name, scope, given }, compiling) {
    if (given === null) {
      return message => {
        message.remove(scope, name)
        return true
      }
    }
    const { from, type, pattern, group } = given
    const { complain } = compiling
    const evaluate = 'kind' in from ? compiling.expression(from) : () => ({ kind: 'xml', nodes: [from] }) as const
    const match = pattern === '' ? null : matcherOf(pattern, complain)
    return message => {
      const value = evaluate(message)
      const matched = match === null ? value : (match(String(convert(value, 'STRING') ?? ''))?.[group] ?? '')
      const converted = convert(matched, type)
      // What it was before may be of another request's making: better none.
      if (converted === undefined) {
        complain(`value of ${name} is no ${type}`)
        message.remove(scope, name)
      } else message.set(scope, name, converted)
      return true
    }
  },
})

function readValue(element: XmlElement, reading: Reading): GivenValue | undefined {
  const type = reading.choice(element, 'type', TYPES, 'STRING')
  if (type === undefined) return undefined
  const pattern = element.has('pattern') ? reading.pattern(element, 'pattern') : ''
  const group = readGroup(element, pattern ?? '', reading)
  if (pattern === undefined || group === undefined) return undefined
  const [inner, second] = element.children
  if (inner !== undefined) {
    const isAlone = second === undefined && !element.has('value') && !element.has('expression') && pattern === ''
    if (type === 'OM' && isAlone) return { type, from: reading.tree(inner), pattern, group }
    return reading.fault(inner, '', 'is the value of a property of the type OM only', 'give the value otherwise')
  }
  const from = reading.valueOrExpression(element)
  if (from === undefined) return undefined
  if (from.kind === 'literal' && pattern === '' && convert(from.value, type) === undefined) {
    return reading.fault(element, 'value', `is no ${type}`, 'correct value or type', String(from.value))
  }
  return { type, from, pattern, group }
}

function readGroup(element: XmlElement, pattern: string, reading: Reading): number | undefined {
  if (!element.has('group')) return 0
  if (!element.has('pattern')) return reading.fault(element, 'group', 'is of a pattern', 'add pattern')
  const given = element.attribute('group')
  const most = patternOf(pattern).groups
  const group = /^\d{1,2}$/.test(given) ? Number(given) : -1
  if (group >= 0 && group <= most) return group
  return reading.fault(element, 'group', `expected 0 to ${most}`, 'correct it', given)
}
