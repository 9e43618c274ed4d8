/** Runs templates for tests, on plain data. */
import { beginTurn } from '../../../src/mediation/flow-limits.ts'
import { compileTemplate } from '../../../src/mediation/freemarker/directives.ts'
import type { RunLimits } from '../../../src/mediation/freemarker/environment.ts'
import { NodeValue } from '../../../src/mediation/freemarker/nodes.ts'
import { parseTemplate } from '../../../src/mediation/freemarker/template-parser.ts'
import { MapHash, type TemplateValue } from '../../../src/mediation/freemarker/values.ts'
import { exactValue } from '../../../src/mediation/formats/json-text.ts'
import type { XmlElementNode } from '../../../src/mediation/xml-tree.ts'

const LIMITS: RunLimits = {
  characters: 1_000_000,
  items: 10_000,
  isOver: () => false,
  parseJson: text => {
    try {
      return { text: JSON.stringify(JSON.parse(text)) }
    } catch {
      return undefined
    }
  },
}

/** `json`: an object whose members are the variables of the template, as text. */
export function rendered(template: string, json = '{}', limits: Partial<RunLimits> = {}): string {
  const members = Object.entries(exactValue(json) as Readonly<Record<string, TemplateValue>>)
  // As a thread gets it.
  const plan = structuredClone(parseTemplate(template))
  beginTurn()
  return compileTemplate(plan)(() => new MapHash(new Map(members)), { ...LIMITS, ...limits })
}

/** The variable `doc` is the document of the element. */
export function renderedOf(template: string, root: XmlElementNode): string {
  const plan = structuredClone(parseTemplate(template))
  beginTurn()
  return compileTemplate(plan)(env => new MapHash(new Map([['doc', NodeValue.document(root, env)]])), LIMITS)
}
