/** `<switch>`: runs the first case whose regular expression matches the whole text. */
import type { Expression } from '../expression.ts'
import { mostOf } from '../flow-plan.ts'
import { mediator } from '../mediator.ts'
import { compileMatcher } from '../pattern.ts'
import type { MediatorPlan } from '../sequence-plan.ts'
import { textOf } from '../value.ts'

interface SwitchSettings {
  readonly source: Expression
  readonly cases: readonly { readonly pattern: string; readonly steps: readonly MediatorPlan[] }[]
  readonly otherwise: readonly MediatorPlan[]
}

export const switchMediator = mediator<SwitchSettings>({
  name: 'switch',
  attributes: ['source'],
  elements: ['case', 'default'],

  parse(element, parser) {
    const source = parser.expression(element, 'source')
    const cases = element.children
      .filter(({ name }) => name === 'case')
      .map(each => {
        parser.checkAttributes(each, ['regex'])
        parser.checkNoText(each)
        return { pattern: parser.pattern(each, 'regex') ?? '', steps: parser.mediators(each.children) }
      })
    const otherwise = parser.only(element, 'default')
    if (otherwise !== undefined) {
      parser.checkAttributes(otherwise, [])
      parser.checkNoText(otherwise)
    }
    if (source === undefined) return undefined
    return { source, cases, otherwise: otherwise === undefined ? [] : parser.mediators(otherwise.children) }
  },

  needs({ source, cases, otherwise }, context) {
    return mostOf(
      context.expression(source),
      ...cases.map(({ steps }) => context.steps(steps)),
      context.steps(otherwise),
    )
  },

  compile({ source, cases, otherwise }, context) {
    const evaluate = context.compileExpression(source)
    const compiled = cases.map(({ pattern, steps }) => ({
      match: compileMatcher(pattern, context.warn),
      run: context.compileAll(steps),
    }))
    const none = context.compileAll(otherwise)
    return message => {
      const text = textOf(evaluate(message))
      const found = compiled.find(({ match }) => match(text) !== null)
      return found === undefined ? none(message) : found.run(message)
    }
  },
})
