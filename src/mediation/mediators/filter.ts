/** `<filter>`: one way or another, by a condition or by a text and a regular expression. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { mediator, type Run } from '../mediator.ts'
import { matcherOf } from '../pattern.ts'
import type { Step } from '../program.ts'
import type { Reading } from '../reading.ts'
import { textOf, truthOf } from '../value.ts'

/** Its steps, or another sequence. */
interface Branch {
  readonly key: string
  readonly steps: readonly Step[]
}

interface FilterSettings {
  readonly condition: Expression
  /** All of the condition's text matches it; '': the condition is a truth. */
  readonly pattern: string
  readonly onMatch: Branch
  readonly otherwise: Branch
}

const NOTHING: Branch = { key: '', steps: [] }

export const filter = mediator<FilterSettings>({
  name: 'filter',
  attributes: ['source', 'regex', 'xpath'],
  elements: null,

  read(element, reading) {
    const byText = element.has('source') || element.has('regex')
    if (byText === element.has('xpath')) {
      return reading.fault(element, 'xpath', 'expected either xpath, or source and regex', 'give one of them')
    }
    const condition = reading.expression(element, byText ? 'source' : 'xpath')
    const pattern = byText ? reading.pattern(element, 'regex') : ''
    const hasBranches = element.children.some(({ name }) => name === 'then' || name === 'else')
    if (hasBranches) reading.elements(element, ['then', 'else'])
    const onMatch = hasBranches
      ? branch(reading.only(element, 'then'), reading)
      : { key: '', steps: reading.steps(element.children) }
    const otherwise = hasBranches ? branch(reading.only(element, 'else'), reading) : NOTHING
    if (condition === undefined || pattern === undefined) return undefined
    return { condition, pattern, onMatch, otherwise }
  },

  compile({ condition, pattern, onMatch, otherwise }, compiling) {
    const evaluate = compiling.expression(condition)
    const match = pattern === '' ? null : matcherOf(pattern, compiling.complain)
    const compiled = (taken: Branch): Run =>
      taken.key === '' ? compiling.steps(taken.steps) : message => compiling.call(taken.key, message)
    const [yes, no] = [compiled(onMatch), compiled(otherwise)]
    return message => {
      const value = evaluate(message)
      const holds = match === null ? truthOf(value) : match(textOf(value)) !== null
      return holds ? yes(message) : no(message)
    }
  },
})

function branch(element: XmlElement | undefined, reading: Reading): Branch {
  if (element === undefined) return NOTHING
  reading.attributes(element, ['sequence'])
  reading.noText(element)
  const key = element.attribute('sequence')
  if (key !== '') {
    reading.calls.add(key)
    reading.elements(element, [])
  }
  return { key, steps: key === '' ? reading.steps(element.children) : [] }
}
