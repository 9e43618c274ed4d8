/** `<header>`: sets or removes a response field, or the destination (`To`). */
import type { Expression } from '../expression.ts'
import { fieldNameError } from '../field-rules.ts'
import { mediator } from '../mediator.ts'
import { convertTo } from '../property-type.ts'
import { textOf } from '../value.ts'

interface HeaderSettings {
  /** '': the destination. */
  readonly field: string
  /** null: removes the field. */
  readonly value: Expression | null
}

export const header = mediator<HeaderSettings>({
  name: 'header',
  attributes: ['name', 'value', 'expression', 'scope', 'action'],
  elements: [],

  parse(element, parser) {
    const name = parser.required(element, 'name')
    const scope = parser.choice(element, 'scope', ['default', 'transport'], 'default')
    const action = parser.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || scope === undefined || action === undefined) return undefined
    if (scope === 'default' && name !== 'To') {
      return parser.error(element, 'name', 'is a SOAP header, which is not supported yet', 'scope="transport"?', name)
    }
    const why = scope === 'transport' ? fieldNameError(name, action === 'remove') : ''
    if (why !== '') return parser.error(element, 'name', why, 'remove it', name)
    const field = scope === 'transport' ? name : ''
    if (action === 'set') {
      const value = parser.valueOrExpression(element)
      return value === undefined ? undefined : { field, value }
    }
    for (const other of ['value', 'expression']) {
      if (element.has(other)) parser.error(element, other, 'has no effect with action="remove"', 'remove it')
    }
    return { field, value: null }
  },

  compile({ field, value }, context) {
    const evaluate = value === null ? () => '' : context.compileExpression(value)
    return message => {
      const text = convertTo(evaluate(message), 'STRING')
      if (text === undefined) context.warn('the value is too long')
      if (field === '') message.to = textOf(text)
      else if (value === null || text === undefined) message.remove('transport', field)
      else message.set('transport', field, text)
      return true
    }
  },
})
