/** Runs `explain` on a temporary home. */
import { join } from 'node:path'
import { explain } from '../../src/cli/explain.ts'
import { argumentsFor, Transcript } from './temporary-home.ts'

/** Output with `F` for the path of the file. */
export async function run(
  home: string,
  rest: readonly string[],
  changes = {},
  options = { changed: false, burst: '' },
): Promise<{ code: number; out: string; err: string }> {
  const out = new Transcript()
  const err = new Transcript()
  const code = await explain(argumentsFor(home, { rest, ...changes }), out, err, options)
  return { code, out: out.text.replaceAll(join(home, 'deployment.toml'), 'F'), err: err.text }
}
