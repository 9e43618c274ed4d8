/** `<sequence key="…"/>`: runs another sequence and then continues, unless that one has ended the message. */
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import { textOf } from '../value.ts'

interface SequenceSettings {
  /** Name, or an expression that finds it. */
  readonly key: string | Expression
}

export const sequence = mediator<SequenceSettings>({
  name: 'sequence',
  attributes: ['key'],
  elements: [],

  parse(element, parser) {
    const key = parser.textOrExpression(element, 'key')
    if (key === undefined) return undefined
    if (key.kind !== 'literal' || element.attribute('key').startsWith('{')) return { key }
    const name = String(key.value)
    parser.calls.add(name)
    return { key: name }
  },

  // Any sequence may be the one that an expression finds.
  needs: ({ key }, context) => (typeof key === 'string' ? context.sequence(key) : 'worker'),

  compile({ key }, context) {
    if (typeof key === 'string') return message => context.runSequence(key, message)
    const evaluate = context.compileExpression(key)
    return message => context.runSequence(textOf(evaluate(message)), message)
  },
})
