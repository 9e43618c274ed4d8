/**
 * Sequence templates: sequences with parameters, which `<call-template>` runs. Their plans stand among those of
 * sequences, under names of their own.
 */
import type { Diagnostic } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import type { SequencePlan } from './sequence-plan.ts'

/** Begins names of plans of templates. No sequence of a file has such a name. */
const PREFIX = 'template '

/** Name of the plan of a template. */
export function templateKey(name: string): string {
  return PREFIX + name
}

/** Name of the template of a plan; undefined for a sequence. */
export function templateName(key: string): string | undefined {
  return key.startsWith(PREFIX) ? key.slice(PREFIX.length) : undefined
}

type Lookup = (name: string) => SequencePlan | undefined

/** Error for the first `<call-template>` of a sequence that leaves out a mandatory parameter. */
export function missingParameter(plan: SequencePlan, lookup: Lookup): Diagnostic | undefined {
  for (const { template, given, line } of plan.templateCalls ?? []) {
    const parameters = lookup(templateKey(template))?.parameters ?? []
    const missing = parameters.find(
      ({ name, isMandatory, value }) => isMandatory && value === '' && !given.includes(name),
    )
    if (missing === undefined) continue
    const expected = `leaves out the mandatory parameter ${missing.name}`
    const hint = `add <with-param name="${missing.name}" value="…"/>`
    return { where: `${plan.label}:${line}`, key: 'call-template', given: template, expected, hint }
  }
  return undefined
}

/** Warnings about parameters that a template does not have. */
export function unknownParameters(plan: SequencePlan, lookup: Lookup): readonly Diagnostic[] {
  return (plan.templateCalls ?? []).flatMap(({ template, given, line }) => {
    const known = lookup(templateKey(template))?.parameters?.map(({ name }) => name)
    if (known === undefined) return []
    return given
      .filter(name => !known.includes(name))
      .map(name => {
        const near = nearest(name, known)
        const hint = near === '' ? `its parameters: ${known.join(', ') || 'none'}` : `did you mean ${near}?`
        const expected = `is no parameter of the template ${template}, so that it has no effect`
        return { where: `${plan.label}:${line}`, key: 'with-param/name', given: name, expected, hint }
      })
  })
}
