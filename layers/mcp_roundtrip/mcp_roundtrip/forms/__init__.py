"""Form elicitation: `form` reads answers, `form_schema` builds the `requestedSchema`."""
