/** The paths under which an API is reached: what the router looks for, and what two APIs must not share. */

const VERSION_SEGMENT = '/{version}'

/**
 * `/context/version`, and `/context` for the default version. A context that holds `{version}` has the version there
 * instead, and the default version leaves that segment out.
 */
export function apiPaths(context: string, version: string, isDefaultVersion: boolean): readonly string[] {
  const at = context.indexOf(VERSION_SEGMENT)
  const before = at < 0 ? context : context.slice(0, at)
  const after = at < 0 ? '' : context.slice(at + VERSION_SEGMENT.length)
  const versioned = `${before}/${version}${after}`
  return isDefaultVersion ? [versioned, `${before}${after}`] : [versioned]
}
