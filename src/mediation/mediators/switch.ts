/** `<switch>`: the first case whose regular expression matches all of a text. */
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import { matcherOf } from '../pattern.ts'
import type { Step } from '../program.ts'
import { textOf } from '../value.ts'

interface SwitchSettings {
  readonly source: Expression
  readonly cases: readonly { readonly pattern: string; readonly steps: readonly Step[] }[]
  readonly otherwise: readonly Step[]
}

export const switchMediator = mediator<SwitchSettings>({
  name: 'switch',
  attributes: ['source'],
  elements: ['case', 'default'],

  read(element, reading) {
    const source = reading.expression(element, 'source')
    const cases = element.children
      .filter(({ name }) => name === 'case')
      .map(each => {
        reading.attributes(each, ['regex'])
        reading.noText(each)
        return { pattern: reading.pattern(each, 'regex') ?? '', steps: reading.steps(each.children) }
      })
    const otherwise = reading.only(element, 'default')
    if (otherwise !== undefined) {
      reading.attributes(otherwise, [])
      reading.noText(otherwise)
    }
    if (source === undefined) return undefined
    return { source, cases, otherwise: otherwise === undefined ? [] : reading.steps(otherwise.children) }
  },

  compile({ source, cases, otherwise }, compiling) {
    const evaluate = compiling.expression(source)
    const compiled = cases.map(({ pattern, steps }) => ({
      match: matcherOf(pattern, compiling.complain),
      run: compiling.steps(steps),
    }))
    const none = compiling.steps(otherwise)
    return message => {
      const text = textOf(evaluate(message))
      const found = compiled.find(({ match }) => match(text) !== null)
      return found === undefined ? none(message) : found.run(message)
    }
  },
})
