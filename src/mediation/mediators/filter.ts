/** `<filter>`: runs one of two branches, by a condition or by a regular expression. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mostOf } from '../flow-plan.ts'
import { mediator } from '../mediator.ts'
import { compileMatcher } from '../pattern.ts'
import type { Branch } from '../sequence-plan.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { textOf, booleanOf } from '../value.ts'

interface FilterSettings {
  readonly condition: Expression
  /** Must match the whole text of the condition; '': the condition is taken as a boolean. */
  readonly pattern: string
  readonly onMatch: Branch
  readonly otherwise: Branch
}

const EMPTY: Branch = { key: '', steps: [] }

export const filter = mediator<FilterSettings>({
  name: 'filter',
  attributes: ['source', 'regex', 'xpath'],
  elements: null,

  parse(element, parser) {
    const byText = element.has('source') || element.has('regex')
    if (byText === element.has('xpath')) {
      return parser.error(element, 'xpath', 'expected either xpath, or source and regex', 'give one of them')
    }
    const condition = parser.expression(element, byText ? 'source' : 'xpath')
    const pattern = byText ? parser.pattern(element, 'regex') : ''
    const hasBranches = element.children.some(({ name }) => name === 'then' || name === 'else')
    if (hasBranches) parser.checkElements(element, ['then', 'else'])
    const onMatch = hasBranches
      ? branch(parser.only(element, 'then'), parser)
      : { key: '', steps: parser.mediators(element.children) }
    const otherwise = hasBranches ? branch(parser.only(element, 'else'), parser) : EMPTY
    if (condition === undefined || pattern === undefined) return undefined
    return { condition, pattern, onMatch, otherwise }
  },

  needs({ condition, onMatch, otherwise }, context) {
    return mostOf(context.expression(condition), context.branch(onMatch), context.branch(otherwise))
  },

  compile({ condition, pattern, onMatch, otherwise }, context) {
    const evaluate = context.compileExpression(condition)
    const match = pattern === '' ? null : compileMatcher(pattern, context.warn)
    const [yes, no] = [context.compileBranch(onMatch), context.compileBranch(otherwise)]
    return message => {
      const value = evaluate(message)
      const holds = match === null ? booleanOf(value) : match(textOf(value)) !== null
      return holds ? yes(message) : no(message)
    }
  },
})

function branch(element: XmlElement | undefined, parser: SequenceParser): Branch {
  if (element === undefined) return EMPTY
  parser.checkAttributes(element, ['sequence'])
  parser.checkNoText(element)
  return parser.branch(element)
}
