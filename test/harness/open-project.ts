/** The text of a project that asks for no credentials: `securityScheme: [none]` is open on purpose. JSON is YAML. */
export function openProject(data: { readonly name: string; readonly [key: string]: unknown }): string {
  const always = { version: '1.0.0', isDefaultVersion: true, securityScheme: ['none'] }
  return JSON.stringify({ type: 'api', version: 'v4.0.0', data: { ...always, ...data } })
}
