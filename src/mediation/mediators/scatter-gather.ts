/**
 * `<scatter-gather>`: runs each `<sequence>` (or `<target>`) on a copy of the message and joins the results: to the
 * body of the message, or to a variable.
 */
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import { type Aggregation, Gathering } from '../copies.ts'
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import { MediationFault } from '../mediation-fault.ts'
import { valueOfPayload } from '../payload-value.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Branch } from '../sequence-plan.ts'
import { booleanOf } from '../value.ts'
import { element as xmlElement } from '../xml-tree.ts'
import { type AggregateSettings, compileCompletion, compileCount, parseCount, parseNumber } from './aggregate.ts'
import { compileTarget, type CopyTarget, parseTarget } from './clone.ts'

interface ScatterSettings {
  readonly isParallel: boolean
  /** Variable of the result; '' for the body. */
  readonly variable: string
  readonly isXml: boolean
  /** Element that encloses the results in XML; '' for none. */
  readonly enclosing: string
  readonly aggregation: Pick<AggregateSettings, 'timeoutMs' | 'min' | 'max' | 'expression'> & {
    /** Results for which it is not true are left out; null: none are. */
    readonly condition: Expression | null
  }
  readonly targets: readonly CopyTarget[]
}

/** Property that carries the enclosing element to the aggregate. */
const ENCLOSING = 'scatter-gather.enclosing'
// biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the language
const WHOLE_BODY = '${payload}'
const NO_STEPS: Branch = { key: '', steps: [] }
const TIMEOUT_MAX_MS = 3_600_000
/** Attributes of the result under both of their names. */
const RESULT_TARGETS = ['target', 'result-target']
const RESULT_TYPES = ['result-content-type', 'content-type']
const RESULT_ELEMENTS = ['result-enclosing-element', 'root-element']

export const scatterGather = mediator<ScatterSettings>({
  name: 'scatter-gather',
  attributes: ['parallel-execution', 'target-variable', ...RESULT_TARGETS, ...RESULT_TYPES, ...RESULT_ELEMENTS],
  elements: ['aggregation', 'sequence', 'target'],

  parse(element, parser) {
    const parallel = parser.choice(element, 'parallel-execution', ['true', 'false'], 'true')
    const type = parser.choice(element, given(element, RESULT_TYPES), ['JSON', 'XML'], 'JSON')
    const variable = variableOf(element, parser)
    const aggregation = parseAggregation(parser.only(element, 'aggregation'), element, type === 'XML', parser)
    const branches = element.children.filter(({ name }) => name !== 'aggregation')
    const targets = branches.map(child => parseBranch(child, parser))
    if (targets.length === 0) return parser.error(element, '', 'has no <sequence>', 'add one for each branch')
    const rootAttribute = given(element, RESULT_ELEMENTS)
    if (type === 'XML' && !element.has(rootAttribute)) {
      return parser.error(element, rootAttribute, 'is missing', 'name the root element of the result')
    }
    if (variable === undefined || aggregation === undefined || targets.includes(undefined)) return undefined
    if (parallel === undefined || type === undefined) return undefined
    return {
      isParallel: parallel === 'true',
      variable,
      isXml: type === 'XML',
      enclosing: element.attribute(rootAttribute),
      aggregation,
      targets: targets as readonly CopyTarget[],
    }
  },

  needs: () => 'worker',

  compile({ isParallel, variable, isXml, enclosing, aggregation: limits, targets }, context) {
    const { expression, condition, timeoutMs } = limits
    const [min, max] = [compileCount(limits.min, context), compileCount(limits.max, context)]
    const holds = condition === null ? null : context.compileExpression(condition)
    const complete = compileCompletion(
      { expression, enclosing: isXml ? ENCLOSING : '', joinsContent: false, onComplete: NO_STEPS },
      context,
    )
    const runs = targets.map(target => compileTarget(target, null, context))
    return async message => {
      const aggregation: Aggregation = { timeoutMs, min: min(message), max: max(message), complete }
      servicesOf(message).claimCopies(runs.length)
      const copies = runs.map(() => message.copy())
      const root = { kind: 'xml', nodes: [xmlElement(enclosing, [])] } as const
      if (isXml) for (const copy of copies) copy.set('default', ENCLOSING, root)
      const gathering = new Gathering(copies)
      const runOf = new Map(copies.map((copy, at) => [copy, runs[at]!]))
      const results = await gathering.run(
        async copy => {
          await runOf.get(copy)!(copy)
          copy.outcome = 'ended'
          if (holds !== null && !booleanOf(holds(copy))) return false
          return gathering.arrive(copy, aggregation)
        },
        isParallel ? undefined : 1,
      )
      const { leader } = gathering
      const failed = results.find(({ copy, error }) => error !== null && (leader === null || copy === leader))
      if (failed !== undefined) throw failed.error!
      if (leader === null) throw new MediationFault({ code: 102554, message: 'Incomplete aggregation' })
      if (variable !== '') message.set('variable', variable, valueOfPayload(leader.payload))
      else {
        message.payload = leader.payload
        message.set('axis2', 'messageType', isXml ? 'application/xml' : 'application/json')
      }
      return true
    }
  },
})

function parseAggregation(
  aggregation: XmlElement | undefined,
  element: XmlElement,
  isXml: boolean,
  parser: SequenceParser,
): ScatterSettings['aggregation'] | undefined {
  if (aggregation === undefined) return parser.error(element, '', 'has no <aggregation>', 'add it')
  parser.checkElements(aggregation, [])
  parser.checkAttributes(aggregation, ['expression', 'condition', 'timeout', 'min-messages', 'max-messages'])
  const text = aggregation.attribute('expression') || (isXml ? '$body/*' : WHOLE_BODY)
  // The documented xpath('…') is a function of `${…}`.
  const isCall = /^\s*xpath\(/.test(text)
  const expression = parser.expressionIn(aggregation, isCall ? `\${${text}}` : text, 'expression')
  const condition = aggregation.has('condition') ? parser.expression(aggregation, 'condition') : null
  const timeoutMs = parseNumber(aggregation, 'timeout', TIMEOUT_MAX_MS, parser)
  const min = parseCount(aggregation, 'min-messages', parser)
  const max = parseCount(aggregation, 'max-messages', parser)
  if (expression === undefined || condition === undefined || timeoutMs === undefined) return undefined
  if (min === undefined || max === undefined) return undefined
  return { expression, condition, timeoutMs, min, max }
}

/** The variable of the result, which the target itself may name; '' for the body. */
function variableOf(element: XmlElement, parser: SequenceParser): string | undefined {
  const target = element.attribute(given(element, RESULT_TARGETS))
  if (['', 'body'].includes(target.toLowerCase())) return ''
  return target.toLowerCase() === 'variable' ? parser.required(element, 'target-variable') : target
}

/** The name of an attribute that the element uses; the first one if none. */
function given(element: XmlElement, names: readonly string[]): string {
  return names.find(name => element.has(name)) ?? names[0]!
}

/** `<sequence>` with mediators or a key; undefined after an error. */
function parseBranch(element: XmlElement, parser: SequenceParser): CopyTarget | undefined {
  if (element.name === 'target') return parseTarget(element, parser)
  parser.checkAttributes(element, ['key'])
  if (element.attribute('key') === '' && element.children.length === 0) {
    return parser.error(element, '', 'is empty', 'add mediators')
  }
  return { ...parser.branch(element, 'key'), endpoint: null, to: '' }
}
