/** Reads the file of `throttle policy apply`. */
import { basename, dirname, resolve } from 'node:path'
import { YamlFile } from '../apis/yaml-file.ts'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { readSource } from '../config/source-file.ts'
import { POLICY_LEVELS } from '../throttle/policy-body.ts'
import { UsageError } from './arguments.ts'

/**
 * The policy of a file, and its level, which the subtype of an exported file names, or the folder of the file. Throws
 * UsageError for a file that cannot be read.
 */
export function readPolicyFile(path: string): { readonly body: unknown; readonly level?: string } {
  const absolute = resolve(path)
  const source = readSource(absolute)
  if (source === undefined) throw new UsageError(`there is no file ${path}`)
  if (source.error !== undefined) throw new UsageError(formatDiagnostic(source.error))
  const file = new YamlFile(source.label, source.text)
  const [error] = file.errors
  if (error !== undefined) throw new UsageError(formatDiagnostic(error))
  const named = [
    ...(file.value(['data']) === undefined ? [] : file.looseTexts(['subtype'])),
    basename(dirname(absolute)),
  ]
  const level = POLICY_LEVELS.find(each => named.some(text => text.toLowerCase().startsWith(each)))
  return { body: file.root, ...(level === undefined ? {} : { level }) }
}
